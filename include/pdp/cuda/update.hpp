#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/step_state.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Applies an optimizer's rule to `parameters` in one pass, as cpu::update does. Throws ConfigError if there are more than `most_gradients`
/// gradients or copies. Copies have the type of the parameters, or are rounded to the type that a model computes in.
///
/// nvcc compiles the kernel of a rule. Those of pdp's own rules come with the CMake target pdp::cuda. For another rule, update() and
/// constants() must be constexpr. A .cu file of the program includes pdp/cuda/kernels/update.cuh and instantiates
/// `template pdp::cuda::Update<Rule> pdp::cuda::update<fields, Rule>;`, with the number of fields of its State. For models that compute in
/// bfloat16 or float16, it also instantiates `Update<Rule, pdp::BFloat16>` or the same with Float16. Without that, the program does not
/// link.
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
