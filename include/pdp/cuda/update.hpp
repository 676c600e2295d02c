#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/step_state.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// One pass of an optimizer's rule over parameters, as cpu::update. At most `most_gradients` gradients, and as many copies, of the
/// parameters' type or rounded to what a model computes in.
///
/// The kernel of a rule is compiled by nvcc: those of pdp's own rules come with the CMake target pdp::cuda. For a rule of a program's own,
/// whose update() and constants() are constexpr, one of its .cu files includes pdp/cuda/kernels/update.cuh and says
/// `template pdp::cuda::Update<Rule> pdp::cuda::update<fields, Rule>;`, where its State has that many fields, and for models that compute
/// in bfloat16 or float16 the same with `Update<Rule, pdp::BFloat16>`, or with Float16. A program that lacks it does not link.
template <std::size_t Fields, class Rule, class Copied>
void update(const Device& device, const Rule& rule, const StepNumbers* numbers, std::span<float> parameters,
            std::span<const float* const> gradients, std::span<float> state, Copied* const* copies, std::size_t copy_count);

template <std::size_t Fields, class Rule, class Copied>
void update(const Device& device, const Rule& rule, const StepNumbers* numbers, std::span<float> parameters,
            std::span<const float* const> gradients, std::span<float> state, std::span<Copied* const> copies) {
  update<Fields>(device, rule, numbers, parameters, gradients, state, copies.data(), copies.size());
}
template <std::size_t Fields, class Rule>
void update(const Device& device, const Rule& rule, const StepNumbers* numbers, std::span<float> parameters,
            std::span<const float* const> gradients, std::span<float> state) {
  update<Fields>(device, rule, numbers, parameters, gradients, state, std::span<float* const>{});
}

inline constexpr std::size_t most_gradients = 8;

template <class Rule, class Copied = float>
using Update = void(const Device&, const Rule&, const StepNumbers*, std::span<float>, std::span<const float* const>, std::span<float>,
                    Copied* const*, std::size_t);

}  // namespace pdp::cuda
