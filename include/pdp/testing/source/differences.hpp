#pragma once

/// Definitions for pdp/testing/differences.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/testing/differences.hpp>

namespace pdp::testing::detail {

PDP_INLINE void check_rows(Index rows) {
  if (rows < 1) throw ConfigError{text("a check of gradients has rows = ", rows, "; expected 1 or more")};
}
PDP_INLINE double weighted_sum(std::span<const double> c, std::span<const double> y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += c[i] * y[i];
  return sum;
}
PDP_INLINE std::string six_digits(double value) {
  return is_nan(value) ? "NaN" : is_finite(value) ? fmt::format("{:.6g}", value) : text(value);
}
PDP_INLINE std::string element_name(std::string_view what, Index width, Index element) {
  return text("element ", element % width, " of row ", element / width, " of ", what);
}
PDP_INLINE std::string gradient_fault(const std::string& function, const std::string& element, const Mismatch& mismatch,
                                      const std::string& differentiated) {
  return text(function, " gives ", six_digits(mismatch.found), " as the gradient of ", element, "; expected ",
              six_digits(mismatch.expected), ", the central difference of ", differentiated);
}

}  // namespace pdp::testing::detail
