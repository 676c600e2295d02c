#pragma once

/// Definitions for pdp/train/print_epoch.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/print_epoch.hpp>

namespace pdp::detail {

PDP_INLINE std::string decimal(double value) { return is_finite(value) ? fmt::format("{:.4f}", value) : text(value); }

PDP_INLINE std::string epoch_line(const Epoch& epoch) {
  return fmt::format("### Epoch {} || loss {} || performance {}", epoch.number, decimal(epoch.loss), decimal(epoch.accuracy));
}

}  // namespace pdp::detail
