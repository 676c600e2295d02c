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
  std::string line = fmt::format("### Epoch {} || loss {} || performance {}", epoch.number, decimal(epoch.loss), decimal(epoch.accuracy));
  if (!epoch.validation) return line;
  line += fmt::format(" || validation loss {}", decimal(epoch.validation->mean_loss()));
  for (const metric::Result& each : epoch.validation->metrics)
    if (each.values.size() == 1) line += fmt::format(" || {} {}", each.name, decimal(each.value()));
  return line;
}

}  // namespace pdp::detail
