#pragma once

#include <cmath>

#include <pdp/core/functions.hpp>
#include <pdp/loss/elementwise.hpp>

// [log_cosh]
/// log(cosh(error)): half a square for small errors, linear for large ones.
struct LogCosh {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    using std::exp, std::log1p;
    constexpr auto log_2 = pdp::functions::number<V>(0.69314718055994531);
    const V size = pdp::functions::abs(output - target);
    return size + log1p(exp(-2 * size)) - log_2;
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const {
    using std::tanh;
    return tanh(output - target);
  }
};

constexpr pdp::loss::Elementwise<LogCosh> log_cosh{};
// [log_cosh]
