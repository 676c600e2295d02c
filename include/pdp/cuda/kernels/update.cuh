#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include <pdp/core/error.hpp>
#include <pdp/cuda/kernels/launch.cuh>
#include <pdp/cuda/update.hpp>

namespace pdp::cuda {

namespace kernel {

/// Pointers as a kernel argument, which is read in place (__grid_constant__). Otherwise each thread would copy the array to its own memory,
/// since it is indexed.
template <class T>
struct Pointers {
  T* at[most_gradients];
  int count;
};

template <class T>
Pointers<Stored<T>> pointers(T* const* from, std::size_t count) {
  Pointers<Stored<T>> all{};
  for (std::size_t i = 0; i < count; ++i) all.at[all.count++] = stored(from[i]);
  return all;
}

template <std::size_t Fields, class Rule, class Copied>
__global__ void __launch_bounds__(block_threads)
    update(Rule rule, const StepNumbers* numbers, float* parameters, Index count, const __grid_constant__ Pointers<const float> gradients,
           float* state, const __grid_constant__ Pointers<Copied> copies) {
  using Step = decltype(constants(rule, StepInfo{}));
  using State = typename Rule::template State<float>;
  static_assert(std::is_trivially_copyable_v<Step>, "pdp: constants() of a rule must return a trivially copyable type for a GPU");
  static_assert(Fields == 0 || sizeof(State) == Fields * sizeof(float));
  if (numbers->skips) return;
  // Computed once a block: the constants of a step, such as two powers in double, cost more than the update of an element.
  alignas(Step) __shared__ unsigned char memory[sizeof(Step)];
  if (threadIdx.x == 0) new (memory) Step(constants(rule, numbers->info));
  __syncthreads();
  const Step& step = *reinterpret_cast<const Step*>(memory);
  const float factor = static_cast<float>(gradient_factor<Rule>(*numbers));
  for (Index i = Index{blockIdx.x} * block_threads + threadIdx.x; i < count; i += Index{gridDim.x} * block_threads) {
    float gradient = gradients.at[0][i];
    for (int other = 1; other < gradients.count; ++other) gradient += gradients.at[other][i];
    gradient *= factor;
    float w = parameters[i];
    State own{};
    if constexpr (Fields > 0) {
      float* const fields = reinterpret_cast<float*>(&own);  // State holds only numbers
      if (state != nullptr)
        for (std::size_t k = 0; k < Fields; ++k) fields[k] = state[static_cast<Index>(k) * count + i];
      rule.update(w, gradient, own, step);
      if (state != nullptr)
        for (std::size_t k = 0; k < Fields; ++k) state[static_cast<Index>(k) * count + i] = fields[k];
    } else {
      rule.update(w, gradient, own, step);
    }
    parameters[i] = w;
    for (int copy = 0; copy < copies.count; ++copy) copies.at[copy][i] = static_cast<Copied>(w);
  }
}

}  // namespace kernel

template <std::size_t Fields, class Rule, class Copied>
void update(const Device& device, const Rule& rule, const StepNumbers* numbers, std::span<float> parameters,
            std::span<const float* const> gradients, std::span<float> state, Copied* const* copies, std::size_t copy_count) {
  if (gradients.size() > most_gradients || copy_count > most_gradients)
    throw ConfigError{text("an update on a GPU accepts at most ", most_gradients, " gradients and ", most_gradients, " copies; found ",
                           gradients.size(), " gradients and ", copy_count, " copies")};
  const auto count = static_cast<Index>(parameters.size());
  if (count == 0) return;
  constexpr unsigned most_blocks = 4 * 1024;
  launch(device, kernel::update<Fields, Rule, Stored<Copied>>, blocks_for(count, block_threads, most_blocks), block_threads, rule, numbers,
         parameters.data(), count, kernel::pointers(gradients.data(), gradients.size()), state.empty() ? nullptr : state.data(),
         kernel::pointers(copies, copy_count));
}

}  // namespace pdp::cuda
