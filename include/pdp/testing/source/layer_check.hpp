#pragma once

/// Definitions for pdp/testing/layer_check.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/layer_check.hpp>

namespace pdp::testing::detail {

PDP_INLINE std::string element_name(const nn::Parameter& parameter, Index element) {
  if (parameter.cols == 0) return text("element ", element, " of ", parameter.full_name());
  return text("element [", element / parameter.cols, ", ", element % parameter.cols, "] of ", parameter.full_name());
}
PDP_INLINE std::string of_layer(const char* name, const nn::Path& at, const std::string& fault) {
  if (fault.empty()) return {};
  const std::string number = at.str();
  return number.empty() ? text("the layer (", name, "): ", fault) : text("layer ", number, " (", name, "): ", fault);
}
PDP_INLINE std::string position_fault(const nn::Parameter& parameter, Index elements) {
  const Index end = parameter.offset + parameter.elements();
  if (end > elements)
    return text("parameters() describes ", parameter.full_name(), " as elements ", parameter.offset, " to ", end - 1,
                ", but parameter_elements() is ", elements, "; expected at least ", nn::padded_parameter(end));
  if (parameter.offset % nn::parameter_block == 0) return {};
  return text("parameters() describes ", parameter.full_name(), " from element ", parameter.offset, " on; expected a multiple of ",
              nn::parameter_block, ", as nn::padded_parameter gives");
}

template <class T>
LayerCheck<T>::LayerCheck(CheckedLayer<T>& layer, const GradientOptions& options)
    : layer_{layer},
      options_{options},
      c_{random_values<T>(options.rows * layer.facts.out, options, "gradient of y", 0, 1)},
      value_{layer.facts.parameters},
      gradient_{layer.facts.parameters},
      y_{options.rows * layer.facts.out},
      saved_{options.rows * layer.facts.saved},
      gradient_x_{options.rows * layer.facts.in},
      batch_sums_(as_size(layer.facts.batch_sums)) {
  std::ranges::fill(value_.values(), T{});
}

template <class T>
std::string LayerCheck<T>::fault() {
  for (const nn::Parameter& parameter : layer_.facts.all_parameters)
    if (std::string found = position_fault(parameter, layer_.facts.parameters); !found.empty()) return found;
  set_parameters();
  for (const auto part : {&LayerCheck::forward_fault, &LayerCheck::rows_fault, &LayerCheck::backward_fault, &LayerCheck::frozen_fault,
                          &LayerCheck::no_rows_fault})
    if (std::string found = (this->*part)(); !found.empty()) return found;
  return {};
}

template <class T>
bool LayerCheck<T>::is_intact() {
  return value_.is_intact() && gradient_.is_intact() && y_.is_intact() && saved_.is_intact() && gradient_x_.is_intact();
}

template <class T>
std::string LayerCheck<T>::unread() const {
  if (layer_.facts.works_in_place) return " (x held NaN, since the layer declares works_in_place)";
  if (layer_.facts.forgets_output) return " (y held NaN, since the layer declares forgets_output)";
  return {};
}

template <class T>
void LayerCheck<T>::set_parameters() {
  for (const nn::Parameter& parameter : layer_.facts.all_parameters) {
    const std::string name = parameter.full_name();
    const auto initial = parameter.initial_values(random::make_key(options_.seed, std::string_view{name}), 0, parameter.elements());
    const auto change = random_values<double>(parameter.elements(), options_, name + " change", 0, 0.25);
    for (std::size_t i = 0; i < initial.size(); ++i) value_.data()[parameter.offset + as_index(i)] = static_cast<T>(initial[i] + change[i]);
  }
}

template <class T>
void LayerCheck<T>::run_forward(Rows rows) {
  for (Index part = 0; part <= layer_.facts.pauses; ++part)
    layer_.forward_part(values_only(), rows, y_.matrix(rows.count, layer_.facts.out), saved_.data(), part);
}
template <class T>
void LayerCheck<T>::run_backward(Rows rows) {
  for (Index part = 0; part <= layer_.facts.pauses; ++part)
    layer_.backward_part(values_only(), rows, y_.read(rows.count, layer_.facts.out),
                         Matrix<const T>{c_.data(), rows.count, layer_.facts.out}, gradient_x_.matrix(rows.count, layer_.facts.in),
                         saved_.data(), part);
}
template <class T>
std::vector<double> LayerCheck<T>::forward() {
  run_forward(all());
  return y_.doubles();
}

template <class T>
std::string LayerCheck<T>::forward_fault() {
  const std::vector<double> y = forward();
  if (!is_intact()) return "forward writes outside of y and of the saved values";
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!is_finite(y[i]))
      return text("forward gives ", six_digits(y[i]), " as ", element_name("y", layer_.facts.out, as_index(i)),
                  "; expected a finite value (if the layer takes no such input, set mean and deviation)");
  if (!layer_.facts.works_in_place) return {};
  std::ranges::copy(layer_.x(), y_.data());
  layer_.forward_in_place(values_only(), y_.matrix(options_.rows, layer_.facts.out), saved_.data());
  for (std::size_t i = 0; i < y.size(); ++i)
    if (const double found = y_.doubles()[i]; found != y[i])
      return text("forward gives ", six_digits(found), " as ", element_name("y", layer_.facts.out, as_index(i)),
                  " in the memory of x; expected ", six_digits(y[i]), ", as in memory of its own, since the layer declares works_in_place");
  return {};
}

template <class T>
std::string LayerCheck<T>::rows_fault() {
  if (layer_.facts.may_pause) return {};
  const std::vector<double> y = forward();
  for (Index row = 0; row < options_.rows; ++row) {
    layer_.forward(values_only(row), {row, 1}, y_.matrix(1, layer_.facts.out), saved_.data());
    for (Index i = 0; i < layer_.facts.out; ++i) {
      const double alone = y_.doubles()[as_size(i)], together = y[as_size(row * layer_.facts.out + i)];
      if (!(std::abs(alone - together) <= options_.tolerance * (std::abs(alone) + std::abs(together) + 1)))
        return text("forward gives ", six_digits(together), " as ", element_name("y", layer_.facts.out, row * layer_.facts.out + i),
                    "; expected ", six_digits(alone), ", the value for that row alone");
    }
  }
  return {};
}

template <class T>
std::string LayerCheck<T>::backward_fault() {
  forward();
  const std::span<T> x = layer_.x();
  const std::vector<T> kept(x.begin(), x.end());
  if (layer_.facts.works_in_place) std::ranges::fill(x, not_a_number<T>());
  if (layer_.facts.forgets_output) y_.clear();
  run_backward(all());
  layer_.backward_weight(state(false), all(), y(), c(), saved_.data());
  const std::vector<T> of_x(gradient_x_.data(), gradient_x_.data() + gradient_x_.values().size()),
      once(gradient_.data(), gradient_.data() + gradient_.values().size());
  layer_.backward_weight(state(true), all(), y(), c(), saved_.data());
  std::ranges::copy(kept, x.begin());
  if (!is_intact()) return "backward writes outside of the gradients and of the saved values";

  const std::vector<double> weights = doubles(std::span<const T>{c_});
  if (!layer_.facts.takes_tokens)
    if (const auto found = first_mismatch(x, std::span{of_x}, weights, options_, [this] { return forward(); }))
      return gradient_fault("backward_input", element_name("x", layer_.facts.in, found->element), *found, "forward") + unread();
  return weight_fault(once, weights);
}

template <class T>
std::string LayerCheck<T>::weight_fault(const std::vector<T>& once, const std::vector<double>& weights) {
  // A gradient that cancels out is nothing but rounding errors.
  double largest = 0;
  for (const T each : once) largest = std::max(largest, std::abs(as_double(each)));
  const double rounding = 100 * as_double(std::numeric_limits<T>::epsilon()) * largest;
  for (const nn::Parameter& parameter : layer_.facts.all_parameters) {
    const auto first = as_size(parameter.offset), count = as_size(parameter.elements());
    const std::span<const T> gradient = std::span{once}.subspan(first, count);
    const auto found = parameter.is_buffer ? std::nullopt
                                           : first_mismatch(value_.values().subspan(first, count), gradient, weights, options_,
                                                            [this] { return forward(); });
    if (found) return gradient_fault("backward_weight", element_name(parameter, found->element), *found, "forward") + unread();
    for (Index i = 0; i < parameter.elements(); ++i) {
      const auto twice = as_double(gradient_.values()[first + as_size(i)]), wanted = 2 * as_double(gradient[as_size(i)]);
      if (!(std::abs(twice - wanted) <= options_.tolerance * (std::abs(twice) + std::abs(wanted)) + rounding))
        return text("backward_weight with accumulate = true gives ", six_digits(twice), " as the gradient of ", element_name(parameter, i),
                    "; expected ", six_digits(wanted), ", the gradient that was there and that of these rows");
    }
  }
  return {};
}

template <class T>
std::string LayerCheck<T>::frozen_fault() {
  if (layer_.facts.takes_tokens) return {};
  nn::State<T> frozen = values_only();
  frozen.pass.is_training = false;
  const auto forward = [&] {
    layer_.forward(frozen, all(), y_.matrix(options_.rows, layer_.facts.out), saved_.data());
    return y_.doubles();
  };
  forward();
  layer_.backward_input(frozen, y(), c(), gradient_x_.matrix(options_.rows, layer_.facts.in), saved_.data());
  const std::vector<T> of_x(gradient_x_.data(), gradient_x_.data() + gradient_x_.values().size());
  const auto found = first_mismatch(layer_.x(), std::span{of_x}, doubles(std::span<const T>{c_}), options_, forward);
  if (!found) return {};
  return gradient_fault("backward_input", element_name("x", layer_.facts.in, found->element), *found, "forward") +
         " (state.pass.is_training was false, as in a frozen layer)";
}

template <class T>
std::string LayerCheck<T>::no_rows_fault() {
  gradient_.clear();
  run_forward({});
  run_backward({});
  layer_.backward_weight(state(false), {}, y_.read(0, layer_.facts.out), {c_.data(), 0, layer_.facts.out}, saved_.data());
  if (!is_intact()) return "a call with 0 rows writes outside of its results";
  for (const nn::Parameter& parameter : layer_.facts.all_parameters) {
    for (Index i = 0; i < parameter.elements(); ++i) {
      if (const auto found = as_double(gradient_.data()[parameter.offset + i]); found != 0) {
        return text("backward_weight with 0 rows and accumulate = false gives ", six_digits(found), " as the gradient of ",
                    element_name(parameter, i), "; expected 0");
      }
    }
  }
  return {};
}

}  // namespace pdp::testing::detail
