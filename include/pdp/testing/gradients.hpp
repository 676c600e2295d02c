#pragma once

#include <string>
#include <type_traits>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/testing/check_result.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/layer_calls.hpp>
#include <pdp/testing/layer_check.hpp>

namespace pdp::testing {

namespace detail {

/// The type to check a layer in: the requested one. Without a request (void), double if the layer computes in it, otherwise float.
template <class Requested, class L>
using CheckedType =
    std::conditional_t<!std::is_void_v<Requested>, Requested, std::conditional_t<nn::LayerOn<L, cpu::Cpu, double>, double, float>>;

}  // namespace detail

/// Checks each layer of a model on a CPU: whether its gradients equal central differences of the sum of c y, with outputs y and random
/// numbers c. Also checks the other rules of a layer:
///   - Its functions write each element of their results and nothing else. They accept 0 rows.
///   - Rows do not depend on each other.
///   - backward_weight overwrites or adds up gradients, as `accumulate` says.
///   - backward does not read x if the layer declares works_in_place, nor y if it declares forgets_output.
///   - If state.pass.is_training is false, as in a frozen layer, backward_input suits forward.
///   - parameters() and parameter_elements() agree.
///
/// Computes in T, or by default in double; in float if a layer has no functions for double. `input`: the shape of a sample. Calls forward
/// at least twice for each element of the input and of the parameters, so use small widths. In float, a difference across the kink of a
/// function such as Relu may fail; try another seed. Throws ShapeError if the layers do not fit together.
///
///   const auto result = testing::check_gradients(nn::Sequential{Scale{5}, nn::Tanh{}}, Shape{5});
///   if (!result) std::cerr << result.text();
template <class T = void, class Model>
CheckResult check_gradients(const Model& model, const Shape& input, const GradientOptions& options = {}) {
  static_assert(nn::detail::is_or_resembles_block<Model>,
                "pdp: the first argument of check_gradients must be a layer or a container of layers");
  static_assert(std::is_void_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
                "pdp: check_gradients computes in float or in double");
  std::string fault;
  if constexpr (nn::Block<Model>) {
    nn::check_widths(nn::flow(model, input));
    Shape shape = input;
    nn::for_each_leaf(model, {}, [&]<class L>(const L& layer, const nn::Path& at) {
      using Checked = detail::CheckedType<T, L>;
      static_cast<void>(nn::detail::LayerOnRequirements<L, cpu::Cpu, Checked>{});
      if constexpr (!nn::is_view<L>) {  // a view computes nothing
        if (fault.empty()) {
          const GradientOptions chosen = detail::for_type<Checked>(options);
          detail::LayerCalls<Checked, L> calls{layer, at, shape, chosen};
          fault = detail::of_layer(L::name, at, detail::LayerCheck<Checked>{calls, chosen}.fault());
        }
      }
      shape = layer.output(shape);
    });
  }
  return CheckResult{fault};
}

}  // namespace pdp::testing
