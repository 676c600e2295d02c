#pragma once

#include <pdp/host/device.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/divided.hpp>

namespace pdp::parallel {

/// A rank's part of a model that is divided over a tensor-parallel group. The last layer may be divided by its outputs where the loss takes
/// that.
template <nn::Block Model, class Loss>
constexpr nn::Divided<Model> divide(const Model& model, nn::Part part, const Loss&) {
  return {model, part, loss::ShardedLoss<Loss, host::Cpu> ? nn::Output::may_be_sharded : nn::Output::whole};
}

}  // namespace pdp::parallel
