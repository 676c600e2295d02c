#pragma once

#include <string>
#include <utility>

#include <pdp/core/requirements.hpp>

namespace pdp::testing {

/// The result of a check of a layer, a loss or an optimizer: whether it found a fault, and a sentence about the first one.
class CheckResult {
 public:
  CheckResult() = default;
  explicit CheckResult(std::string fault) : fault_{std::move(fault)} {}

  /// Returns whether the check found no fault.
  explicit operator bool() const { return fault_.empty(); }
  /// Returns the sentence: the part that is at fault, the value found and the value expected. Empty if there is no fault.
  [[nodiscard]] const std::string& text() const { return fault_; }

 private:
  std::string fault_;
};

}  // namespace pdp::testing
