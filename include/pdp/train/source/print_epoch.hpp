#pragma once

/// Definitions for pdp/train/print_epoch.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/print_epoch.hpp>

namespace pdp::detail {

PDP_INLINE std::string decimal(double value) { return is_finite(value) ? fmt::format("{:.4f}", value) : text(value); }

PDP_INLINE std::string epoch_line(const Epoch& epoch) {
  std::string line = fmt::format("### Epoch {} || loss {} || performance {}", epoch.number, decimal(epoch.loss), decimal(epoch.accuracy));
  const auto add_metrics = [&line](const Evaluation& of, std::string_view before) {
    for (const metric::Result& each : of.metrics)
      if (each.values.size() == 1) line += fmt::format(" || {}{} {}", before, each.name, decimal(each.value()));
  };
  if (epoch.training) add_metrics(*epoch.training, "training ");
  if (epoch.validation) {
    line += fmt::format(" || validation loss {}", decimal(epoch.validation->mean_loss()));
    add_metrics(*epoch.validation, "");
  }
  return line;
}

}  // namespace pdp::detail
