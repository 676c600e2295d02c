#pragma once

/// Definitions for pdp/train/options.hpp; see pdp/core/separate_compilation.hpp.

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/train/options.hpp>

namespace pdp {

PDP_INLINE cpu::Cpu TrainerOptions::cpu() const {
  const cpu::Cpu all{.threads = threads};
  cpu::check(all);
  return all;
}

PDP_INLINE std::string TrainerOptions::useless_threads(int cores) const {
  if (threads > 1 && !cpu::has_threads())
    return text("threads = ", threads, " was given, but without pdp::onednn a rank uses one; link it, with a oneDNN that has ", "OpenMP");
  if (cores > 0 && threads > cores)
    return text("threads = ", threads, " was given, but this process may use only ", cores, cores == 1 ? " core" : " cores");
  return {};
}

PDP_INLINE void detail::warn_of_useless_threads(const TrainerOptions& options) {
  const std::string useless = options.useless_threads(cpu::usable_cores());
  if (!useless.empty()) std::fputs(text("pdp: ", useless, '\n').c_str(), stderr);
}

}  // namespace pdp
