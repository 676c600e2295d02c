#pragma once

#include <concepts>

#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/strategy/strategy.hpp>

namespace pdp::strategy {

/// A strategy that divides layers: part(at) returns a rank's part of them. Its plans are for the outline of the divided model.
template <class S>
concept Divides = Strategy<S> && requires(const S& strategy, RankInWorld at) {
  { strategy.part(at) } -> std::same_as<nn::Part>;
};

/// Returns the model as a rank holds it under a strategy: nn::Divided if the strategy divides layers, else the model itself. Its outline is
/// the same on all ranks. The outputs of the last layer may be divided if the loss supports that.
template <Strategy S, nn::Block Model, class Loss>
constexpr auto placed(const S& strategy, const Model& model, RankInWorld at, const Loss&) {
  if constexpr (Divides<S>)
    return nn::Divided<Model>{model, strategy.part(at), loss::ShardedLoss<Loss, cpu::Cpu> ? nn::Output::may_be_sharded : nn::Output::whole};
  else
    return model;
}

}  // namespace pdp::strategy
