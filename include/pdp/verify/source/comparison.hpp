#pragma once

/// Definitions for pdp/verify/comparison.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/verify/comparison.hpp>

namespace pdp::plan {

PDP_INLINE std::string Comparison::text() const {
  using detail::byte_text;
  std::vector<std::vector<std::string>> rows{
      {"strategy", "ranks", "parameters", "gradients", "optimizer", "activations", "memory", "all ranks", "calls", "sent", "bubble"}};
  std::string notes;
  for (const Entry& entry : entries) {
    const Description& all = entry.description;
    if (all.ranks.empty()) {
      notes += pdp::text('\n', entry.name, " does not fit: ", entry.problem);
      continue;
    }
    const RankUse& most = *std::ranges::max_element(all.ranks, {}, &RankUse::memory);
    const RankUse& sender = *std::ranges::max_element(all.ranks, {}, &RankUse::sent);
    rows.push_back({entry.name, pdp::text(all.ranks.size()), byte_text(most.parameters), byte_text(most.gradients),
                    byte_text(most.optimizer_state), byte_text(most.activations), byte_text(most.memory()), byte_text(all.total().memory()),
                    pdp::text(sender.calls), byte_text(sender.sent), pdp::text(std::lround(100 * all.bubble()), " %")});
    if (const std::string warning = all.warning(); !warning.empty()) notes += pdp::text('\n', entry.name, ": ", warning);
  }
  return detail::table_text(rows, 1) + notes;
}

}  // namespace pdp::plan
