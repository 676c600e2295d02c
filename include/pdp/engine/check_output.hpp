#pragma once

#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::engine {

/// Throws ConfigError if a loss does not support a model's output as it is divided over a tensor-parallel group.
template <class Loss, class D = cpu::Cpu, class T = float>
constexpr void check_output(const nn::Outline& model) {
  if (model.output_is_sharded && !loss::ShardedLoss<Loss, D, T>)
    throw ConfigError{
        "each rank of a tensor-parallel group has some columns of the model's output, but the loss needs all of them; end the model with "
        "nn::RowParallel and nn::AllReduce, or use a loss that supports divided classes, such as loss::CrossEntropy"};
}

}  // namespace pdp::engine
