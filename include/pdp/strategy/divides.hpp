#pragma once

#include <concepts>

#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/strategy/strategy.hpp>

namespace pdp::strategy {

/// A strategy that divides layers: part(where) says which part of them a rank has. Its plans are for the outline of a model so divided.
template <class S>
concept Divides = Strategy<S> && requires(const S& strategy, RankInWorld at) {
  { strategy.part(at) } -> std::same_as<nn::Part>;
};

/// The model as a rank has it under a strategy: itself, unless the strategy divides layers. Its outline is the same on all ranks. The last
/// layer may be divided by its outputs where the loss takes that.
template <Strategy S, nn::Block Model, class Loss>
constexpr auto placed(const S& strategy, const Model& model, RankInWorld at, const Loss&) {
  if constexpr (Divides<S>)
    return nn::Divided<Model>{model, strategy.part(at), loss::ShardedLoss<Loss, cpu::Cpu> ? nn::Output::may_be_sharded : nn::Output::whole};
  else
    return model;
}

}  // namespace pdp::strategy
