#pragma once

#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp::plan {

/// Descriptions of several strategies for one model, side by side.
struct Comparison {
  struct Entry {
    std::string name{};         // of the strategy
    Description description{};  // without ranks if the strategy does not fit
    std::string problem{};      // the reason, if it does not fit
  };
  std::vector<Entry> entries{};

  /// Returns a table with a line for each strategy that fits, and below it the reasons and warnings of the others. Memory is that of the
  /// rank that holds most, and of all ranks together. Calls and bytes are those of the rank that sends most in a step.
  [[nodiscard]] std::string text() const;
};

}  // namespace pdp::plan

#ifndef PDP_SEPARATE_CORE
#include <pdp/verify/source/comparison.hpp>
#endif
