#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/guarded_memory.hpp>

namespace pdp::testing::detail {

/// Returns the name of an element of a parameter: "element [1, 2] of 0.weight".
std::string element_name(const nn::Parameter& parameter, Index element);
/// Returns "layer 0 (Scale): " and the fault, or an empty string if there is none.
std::string of_layer(const char* name, const nn::Path& at, const std::string& fault);
/// Returns a sentence if a parameter does not lie in the layer's parameter_elements(), or does not start at a multiple of parameter_block.
std::string position_fault(const nn::Parameter& parameter, Index elements);

/// Checks the functions of a layer on samples of a shape, in arithmetic of type T. See check_gradients().
template <class T, class L>
class LayerCheck {
  using X = nn::InputOf<L, T>;

 public:
  LayerCheck(const L& layer, const nn::Path& at, const Shape& input, const GradientOptions& options)
      : layer_{layer},
        options_{options},
        input_{input},
        in_{input.elements()},
        out_{layer.output(input).elements()},
        x_{inputs(layer, options.rows * in_, options)},
        c_{random_values<T>(options.rows * out_, options, "gradient of y", 0, 1)},
        value_{layer.parameter_elements()},
        gradient_{layer.parameter_elements()},
        y_{options.rows * out_},
        saved_{options.rows * layer.saved_elements(input)},
        gradient_x_{options.rows * in_},
        batch_sums_(as_size(nn::batch_sums(layer))) {
    std::ranges::fill(value_.values(), T{});
    layer.parameters(at, 0, [&](const nn::Parameter& parameter) { parameters_.push_back(parameter); });
  }

  /// Returns a sentence about the first fault, or an empty string.
  [[nodiscard]] std::string fault() {
    for (const nn::Parameter& parameter : parameters_)
      if (std::string found = position_fault(parameter, layer_.parameter_elements()); !found.empty()) return found;
    set_parameters();
    for (const auto part : {&LayerCheck::forward_fault, &LayerCheck::rows_fault, &LayerCheck::backward_fault, &LayerCheck::frozen_fault,
                            &LayerCheck::no_rows_fault})
      if (std::string found = (this->*part)(); !found.empty()) return found;
    return {};
  }

 private:
  /// Returns random values, or random tokens of the layer's vocabulary.
  [[nodiscard]] static std::vector<X> inputs(const L& layer, Index count, const GradientOptions& options) {
    if constexpr (nn::takes_tokens<L>) {
      Index vocabulary = 2;
      if constexpr (requires { layer.vocabulary; }) vocabulary = layer.vocabulary;
      random::Stream stream{random::make_key(options.seed, "tokens")};
      std::vector<X> tokens;
      for (Index i = 0; i < count; ++i) tokens.push_back(static_cast<X>(stream.below(as_size(vocabulary))));
      return tokens;
    } else {
      return random_values<T>(count, options, "x", options.mean, options.deviation);
    }
  }
  [[nodiscard]] Index rows() const { return options_.rows; }
  /// `first_row`: the number of the first row of the pass.
  [[nodiscard]] pdp::Pass pass(Index first_row = 0) const {
    return {.is_training = true, .numbers = &numbers_, .key = random::make_key(options_.seed, "pass"), .first_row = first_row};
  }
  [[nodiscard]] nn::State<T> state(bool accumulate) {
    return {value_.data(), gradient_.data(), accumulate, pass(), input_, batch_sums_.data()};
  }
  [[nodiscard]] nn::State<T> values_only(Index first_row = 0) {
    return {value_.data(), nullptr, false, pass(first_row), input_, batch_sums_.data()};
  }
  /// Run all parts of a layer, also of one that pauses.
  void run_forward(const nn::State<T>& state, Matrix<const X> x, Matrix<T> y) {
    for (Index part = 0; part <= nn::pauses(layer_); ++part) nn::forward_part(layer_, cpu_, state, x, y, saved_.data(), part);
  }
  void run_backward(const nn::State<T>& state, Matrix<const X> x, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
    if constexpr (!nn::takes_tokens<L>)
      for (Index part = 0; part <= nn::pauses(layer_); ++part)
        nn::backward_part(layer_, cpu_, state, x, y, gradient_y, gradient_x, saved_.data(), part);
  }
  [[nodiscard]] Matrix<const X> x() const { return {x_.data(), rows(), in_}; }
  [[nodiscard]] Matrix<const T> c() const { return {c_.data(), rows(), out_}; }
  [[nodiscard]] bool is_intact() {
    return value_.is_intact() && gradient_.is_intact() && y_.is_intact() && saved_.is_intact() && gradient_x_.is_intact();
  }
  /// Sets the parameters near their initial values. These themselves may be 0, which would hide errors.
  void set_parameters() {
    for (const nn::Parameter& parameter : parameters_) {
      const std::string name = parameter.full_name();
      const auto initial = parameter.initial_values(random::make_key(options_.seed, std::string_view{name}), 0, parameter.elements());
      const auto change = random_values<double>(parameter.elements(), options_, name + " change", 0, 0.25);
      for (std::size_t i = 0; i < initial.size(); ++i)
        value_.data()[parameter.offset + as_index(i)] = static_cast<T>(initial[i] + change[i]);
    }
  }
  std::vector<double> forward() {
    run_forward(values_only(), x(), y_.matrix(rows(), out_));
    return y_.doubles();
  }

  std::string forward_fault() {
    const std::vector<double> y = forward();
    if (!is_intact()) return "forward writes outside of y and of the saved values";
    for (std::size_t i = 0; i < y.size(); ++i)
      if (!is_finite(y[i]))
        return text("forward gives ", six_digits(y[i]), " as ", element_name("y", out_, as_index(i)),
                    "; expected a finite value (if the layer takes no such input, set mean and deviation)");
    if constexpr (nn::works_in_place<L>) {
      std::ranges::copy(x_, y_.data());
      layer_.forward(cpu_, values_only(), y_.read(rows(), out_), y_.matrix(rows(), out_), saved_.data());
      for (std::size_t i = 0; i < y.size(); ++i)
        if (const double found = y_.doubles()[i]; found != y[i])
          return text("forward gives ", six_digits(found), " as ", element_name("y", out_, as_index(i)), " in the memory of x; expected ",
                      six_digits(y[i]), ", as in memory of its own, since the layer declares works_in_place");
    }
    return {};
  }
  /// Finds rows whose output depends on other rows, as it may in a layer that pauses.
  std::string rows_fault() {
    if constexpr (nn::Pauses<L>) return {};
    const std::vector<double> y = forward();
    for (Index row = 0; row < rows(); ++row) {
      layer_.forward(cpu_, values_only(row), Matrix<const X>{x_.data() + row * in_, 1, in_}, y_.matrix(1, out_), saved_.data());
      for (Index i = 0; i < out_; ++i) {
        const double alone = y_.doubles()[as_size(i)], together = y[as_size(row * out_ + i)];
        if (!(std::abs(alone - together) <= options_.tolerance * (std::abs(alone) + std::abs(together) + 1)))
          return text("forward gives ", six_digits(together), " as ", element_name("y", out_, row * out_ + i), "; expected ",
                      six_digits(alone), ", the value for that row alone");
      }
    }
    return {};
  }
  /// Returns which tensor backward cannot read, for a message.
  [[nodiscard]] static std::string unread() {
    if constexpr (nn::works_in_place<L>) return " (x held NaN, since the layer declares works_in_place)";
    if constexpr (nn::forgets_output<L>) return " (y held NaN, since the layer declares forgets_output)";
    return {};
  }
  std::string backward_fault() {
    forward();
    std::vector<X> kept = x_;
    if constexpr (nn::works_in_place<L>) std::ranges::fill(x_, not_a_number<T>());
    if constexpr (nn::forgets_output<L>) y_.clear();
    run_backward(values_only(), x(), y_.read(rows(), out_), c(), gradient_x_.matrix(rows(), in_));
    layer_.backward_weight(cpu_, state(false), x(), y_.read(rows(), out_), c(), saved_.data());
    const std::vector<T> of_x(gradient_x_.data(), gradient_x_.data() + gradient_x_.values().size()),
        once(gradient_.data(), gradient_.data() + gradient_.values().size());
    layer_.backward_weight(cpu_, state(true), x(), y_.read(rows(), out_), c(), saved_.data());
    x_ = kept;
    if (!is_intact()) return "backward writes outside of the gradients and of the saved values";

    const std::vector<double> weights = doubles(std::span<const T>{c_});
    const auto y = [this] { return forward(); };
    if constexpr (!nn::takes_tokens<L>)
      if (const auto found = first_mismatch(std::span<T>{x_}, std::span{of_x}, weights, options_, y))
        return gradient_fault("backward_input", element_name("x", in_, found->element), *found, "forward") + unread();
    // A gradient that cancels out is nothing but rounding errors.
    double largest = 0;
    for (const T each : once) largest = std::max(largest, std::abs(static_cast<double>(each)));
    const double rounding = 100 * static_cast<double>(std::numeric_limits<T>::epsilon()) * largest;
    for (const nn::Parameter& parameter : parameters_) {
      const auto first = as_size(parameter.offset), count = as_size(parameter.elements());
      const std::span<const T> gradient = std::span{once}.subspan(first, count);
      if (const auto found =
              parameter.is_buffer ? std::nullopt : first_mismatch(value_.values().subspan(first, count), gradient, weights, options_, y))
        return gradient_fault("backward_weight", element_name(parameter, found->element), *found, "forward") + unread();
      for (Index i = 0; i < parameter.elements(); ++i) {
        const auto twice = static_cast<double>(gradient_.values()[first + as_size(i)]),
                   wanted = 2 * static_cast<double>(gradient[as_size(i)]);
        if (!(std::abs(twice - wanted) <= options_.tolerance * (std::abs(twice) + std::abs(wanted)) + rounding))
          return text("backward_weight with accumulate = true gives ", six_digits(twice), " as the gradient of ",
                      element_name(parameter, i), "; expected ", six_digits(wanted),
                      ", the gradient that was there and that of these rows");
      }
    }
    return {};
  }
  /// Checks backward of a frozen layer, which computes as in an evaluation.
  std::string frozen_fault() {
    if constexpr (!nn::takes_tokens<L>) {
      nn::State<T> frozen = values_only();
      frozen.pass.is_training = false;
      const auto forward = [&] {
        layer_.forward(cpu_, frozen, x(), y_.matrix(rows(), out_), saved_.data());
        return y_.doubles();
      };
      forward();
      layer_.backward_input(cpu_, frozen, x(), y_.read(rows(), out_), c(), gradient_x_.matrix(rows(), in_), saved_.data());
      const std::vector<T> of_x(gradient_x_.data(), gradient_x_.data() + gradient_x_.values().size());
      const std::vector<double> weights = doubles(std::span<const T>{c_});
      if (const auto found = first_mismatch(std::span<T>{x_}, std::span{of_x}, weights, options_, forward))
        return gradient_fault("backward_input", element_name("x", in_, found->element), *found, "forward") +
               " (state.pass.is_training was false, as in a frozen layer)";
    }
    return {};
  }
  /// Runs all functions without rows. The gradients of the parameters are then zero.
  std::string no_rows_fault() {
    gradient_.clear();
    run_forward(values_only(), Matrix<const X>{x_.data(), 0, in_}, y_.matrix(0, out_));
    const Matrix<const T> y = y_.read(0, out_), none{c_.data(), 0, out_};
    run_backward(values_only(), Matrix<const X>{x_.data(), 0, in_}, y, none, gradient_x_.matrix(0, in_));
    layer_.backward_weight(cpu_, state(false), Matrix<const X>{x_.data(), 0, in_}, y, none, saved_.data());
    if (!is_intact()) return "a call with 0 rows writes outside of its results";
    for (const nn::Parameter& parameter : parameters_) {
      for (Index i = 0; i < parameter.elements(); ++i) {
        if (const auto found = static_cast<double>(gradient_.data()[parameter.offset + i]); found != 0) {
          return text("backward_weight with 0 rows and accumulate = false gives ", six_digits(found), " as the gradient of ",
                      element_name(parameter, i), "; expected 0");
        }
      }
    }
    return {};
  }

  const L& layer_;
  const cpu::Cpu cpu_{};
  GradientOptions options_;
  Shape input_;
  Index in_, out_;
  std::vector<X> x_;
  std::vector<T> c_;  // the gradient of y
  GuardedMemory<T> value_, gradient_, y_, saved_, gradient_x_;
  std::vector<double> batch_sums_;
  std::vector<nn::Parameter> parameters_{};
  StepNumbers numbers_{.scale = 1, .row_scale = 1};
};

}  // namespace pdp::testing::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/layer_check.hpp>
#endif
