#pragma once

#include <cmath>

#include <pdp/core/functions.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/elementwise.hpp>

/// Activation functions besides Relu and Tanh. `using std::exp` and the like let a single number use the C library.
namespace pdp::nn {

namespace functions {

struct Sigmoid {
  static constexpr const char* name = "Sigmoid";
  template <class V>
  constexpr V operator()(const V& x) const {
    using std::exp;
    return 1 / (1 + exp(-x));
  }
  template <class V>
  constexpr V derivative(const V& y) const {
    return y * (1 - y);
  }
};

struct Silu {
  static constexpr const char* name = "Silu";
  template <class V>
  constexpr V operator()(const V& x) const {
    return x * Sigmoid{}(x);
  }
  template <class V>
  constexpr V derivative(const V& x, const V&) const {
    const V gate = Sigmoid{}(x);
    return gate * (1 + x * (1 - gate));
  }
};

struct Gelu {
  static constexpr const char* name = "Gelu";
  template <class V>
  constexpr V operator()(const V& x) const {
    using std::erf;
    return x * part_below(V{erf(V{root_half<V> * x})});
  }
  template <class V>
  constexpr V derivative(const V& x, const V&) const {
    using pdp::functions::error_function;
    constexpr auto density = pdp::functions::number<V>(0.39894228040143268);  // 1 / sqrt(2 pi)
    const auto found = error_function(V{root_half<V> * x});
    return part_below(found.value) + density * x * found.exponential;
  }

 private:
  template <class V>
  static constexpr auto root_half = pdp::functions::number<V>(0.70710678118654752);
  template <class V>
  static constexpr V part_below(const V& erf_of_x) {
    return 0.5f * (1 + erf_of_x);
  }
};

struct LeakyRelu {
  static constexpr const char* name = "LeakyRelu";
  float slope = 0.01f;
  template <class V>
  constexpr V operator()(const V& x) const {
    return pdp::functions::select(x > 0, x, slope * x);
  }
  template <class V>
  constexpr V derivative(const V& x, const V&) const {
    return pdp::functions::select(x > 0, 1, slope);
  }
};

}  // namespace functions

/// y = 1 / (1 + e^-x), elementwise.
using Sigmoid = Elementwise<functions::Sigmoid>;
/// y = x / (1 + e^-x), elementwise; also called swish. Elfwing et al., "Sigmoid-weighted linear units", 2018.
using Silu = Elementwise<functions::Silu>;
/// y = x P(X <= x) for a normal X, elementwise, by the error function as PyTorch's default. Hendrycks, Gimpel, "Gaussian error linear
/// units", arXiv:1606.08415.
using Gelu = Elementwise<functions::Gelu>;
/// y = x if x > 0, else slope * x, elementwise: LeakyRelu{0.01f}.
using LeakyRelu = Elementwise<functions::LeakyRelu>;

static_assert(Layer<Sigmoid> && Layer<Silu> && Layer<Gelu> && Layer<LeakyRelu>);

}  // namespace pdp::nn
