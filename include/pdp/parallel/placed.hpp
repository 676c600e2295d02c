#pragma once

#include <concepts>

#include <pdp/host/device.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/parallel/strategy.hpp>

namespace pdp::parallel {

/// A strategy that divides layers: part(where) says which part of them a rank has. Its plans are for the outline of a model so divided.
template <class S>
concept Divides = Strategy<S> && requires(const S& strategy, Place at) {
  { strategy.part(at) } -> std::same_as<nn::Part>;
};

/// The model as a rank has it under a strategy: itself, unless the strategy divides layers. Its outline is the same on all ranks. The last
/// layer may be divided by its outputs where the loss takes that.
template <Strategy S, nn::Block Model, class Loss>
constexpr auto placed(const S& strategy, const Model& model, Place at, const Loss&) {
  if constexpr (Divides<S>)
    return nn::Divided<Model>{model, strategy.part(at),
                              loss::ShardedLoss<Loss, host::Cpu> ? nn::Output::may_be_sharded : nn::Output::whole};
  else
    return model;
}

/// Throws ConfigError where a loss does not take a model's output as it lies over a tensor-parallel group.
template <class Loss, class D = host::Cpu, class T = float>
constexpr void check_output(const Outline& model) {
  if (model.output_is_sharded && !loss::ShardedLoss<Loss, D, T>)
    throw ConfigError{
        "each rank of a tensor-parallel group has some columns of the model's output, but the loss needs all of them; end the model with "
        "nn::RowParallel and nn::AllReduce, or take a loss of class-parallel form, such as loss::CrossEntropy"};
}

}  // namespace pdp::parallel
