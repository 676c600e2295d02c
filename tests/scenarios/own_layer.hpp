#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include <pdp/pdp.hpp>

/// Subtracts the running mean of its inputs, which is a buffer.
struct Centre {
  static constexpr const char* name = "Centre";
  pdp::Index width = 0;

  constexpr pdp::Index input_elements() const { return width; }
  constexpr pdp::Shape output(const pdp::Shape&) const { return pdp::Shape{width}; }
  constexpr pdp::Index parameter_elements() const { return pdp::nn::padded_parameter(width); }
  constexpr pdp::Index saved_elements(const pdp::Shape&) const { return 0; }
  constexpr void parameters(const pdp::nn::Path& path, pdp::Index offset, auto&& visit) const {
    visit(pdp::nn::Parameter{
        .layer = path, .name = "mean", .rows = width, .offset = offset, .initializer = pdp::nn::zeros, .is_buffer = true});
  }

  using In = pdp::Matrix<const float>;
  void forward(const pdp::cpu::Cpu&, const pdp::nn::State<float>& state, In x, pdp::Matrix<float> y, float*) const {
    for (pdp::Index i = 0; i < x.size(); ++i) y.data[i] = x.data[i] - state.value[i % width];
  }
  void backward_input(const pdp::cpu::Cpu&, const pdp::nn::State<float>&, In, In, In from, pdp::Matrix<float> to, float*) const {
    std::ranges::copy(from.values(), to.data);
  }
  void backward_weight(const pdp::cpu::Cpu&, const pdp::nn::State<float>& state, In x, In, In, float*) const {
    if (!state.accumulate) std::fill_n(state.gradient, width, 0.0f);
    const float part = 0.1f * static_cast<float>(state.pass.row_scale());
    for (pdp::Index i = 0; i < x.size(); ++i) state.gradient[i % width] += part * (x.data[i] - state.value[i % width]);
  }
};

/// The mean of log(cosh(error)).
struct LogCosh {
  using Target = float;
  static constexpr bool has_classes = false;
  constexpr pdp::Index target_elements(pdp::Index outputs) const { return outputs; }
  void operator()(const pdp::cpu::Cpu&, pdp::Matrix<const float> y, std::span<const float> targets, const double* scale,
                  pdp::Matrix<float> gradient, pdp::LossSums* sums) const {
    for (pdp::Index i = 0; i < y.size(); ++i) {
      const float error = y.data[i] - targets[pdp::as_size(i)];
      sums->loss += std::log(std::cosh(error));
      if (gradient.data != nullptr) gradient.data[i] = static_cast<float>(*scale) * std::tanh(error);
    }
  }
};
