#pragma once

#include <string>
#include <vector>

#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/guarded_memory.hpp>
#include <pdp/testing/layer_calls.hpp>

namespace pdp::testing::detail {

/// Returns the name of an element of a parameter: "element [1, 2] of 0.weight".
std::string element_name(const nn::Parameter& parameter, Index element);
/// Returns "layer 0 (Scale): " and the fault, or an empty string if there is none.
std::string of_layer(const char* name, const nn::Path& at, const std::string& fault);
/// Returns a sentence if a parameter does not lie in the layer's parameter_elements(), or does not start at a multiple of parameter_block.
std::string position_fault(const nn::Parameter& parameter, Index elements);

/// Checks the functions of a layer in arithmetic of type T, float or double. See check_gradients(). Refers to the layer.
template <class T>
class LayerCheck {
 public:
  LayerCheck(CheckedLayer<T>& layer, const GradientOptions& options);

  /// Returns a sentence about the first fault, or an empty string.
  [[nodiscard]] std::string fault();

 private:
  using Rows = typename CheckedLayer<T>::Rows;

  [[nodiscard]] Rows all() const { return {0, options_.rows}; }
  /// `first_row`: the number of the first row of the pass.
  [[nodiscard]] pdp::Pass pass(Index first_row = 0) const {
    return {.is_training = true, .numbers = &numbers_, .key = random::make_key(options_.seed, "pass"), .first_row = first_row};
  }
  [[nodiscard]] nn::State<T> state(bool accumulate) {
    return {value_.data(), gradient_.data(), accumulate, pass(), layer_.facts.input, batch_sums_.data()};
  }
  [[nodiscard]] nn::State<T> values_only(Index first_row = 0) {
    return {value_.data(), nullptr, false, pass(first_row), layer_.facts.input, batch_sums_.data()};
  }
  [[nodiscard]] Matrix<const T> c() const { return {c_.data(), options_.rows, layer_.facts.out}; }
  [[nodiscard]] Matrix<const T> y() { return y_.read(options_.rows, layer_.facts.out); }
  [[nodiscard]] bool is_intact();
  /// Returns which tensor backward cannot read, for a message.
  [[nodiscard]] std::string unread() const;
  /// Sets the parameters near their initial values. These themselves may be 0, which would hide errors.
  void set_parameters();
  /// Run all parts of a layer, also of one that pauses. forward() returns y.
  void run_forward(Rows rows);
  void run_backward(Rows rows);
  std::vector<double> forward();

  std::string forward_fault();
  /// Finds rows whose output depends on other rows, as it may in a layer that pauses.
  std::string rows_fault();
  std::string backward_fault();
  std::string weight_fault(const std::vector<T>& once, const std::vector<double>& weights);
  /// Checks backward of a frozen layer, which computes as in an evaluation.
  std::string frozen_fault();
  /// Runs all functions without rows. The gradients of the parameters are then zero.
  std::string no_rows_fault();

  CheckedLayer<T>& layer_;
  GradientOptions options_;
  std::vector<T> c_;  // the gradient of y
  GuardedMemory<T> value_, gradient_, y_, saved_, gradient_x_;
  std::vector<double> batch_sums_;
  StepNumbers numbers_{.scale = 1, .row_scale = 1};
};

}  // namespace pdp::testing::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/layer_check.hpp>
#endif
