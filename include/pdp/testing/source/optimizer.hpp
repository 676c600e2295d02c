#pragma once

/// Definitions for pdp/testing/optimizer.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/optimizer.hpp>

namespace pdp::testing::detail {

PDP_INLINE std::vector<float> gradients_of(const OptimizerCheckOptions& options, std::int64_t step) {
  std::vector<float> gradient(as_size(options.elements));
  random::fill_normal<float>(random::make_key(options.seed, "gradients", step), 0, gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] *= i % 5 == 4 ? 0.0f : i % 3 == 0 ? 0.01f : static_cast<float>(1 + i % 4);
  return gradient;
}
PDP_INLINE StepInfo step_of(std::int64_t number) { return {.number = number, .lr_factor = number % 2 == 0 ? 0.5f : 1.0f}; }
PDP_INLINE std::string update_fault(const std::string& path, Index element, double found, double expected, std::int64_t steps) {
  return text(path, " gives ", six_digits(found), " as parameter ", element, " after ", steps, " steps; expected ", six_digits(expected));
}

}  // namespace pdp::testing::detail
