#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch::detail {

/// Returns the starter of this process, or nothing: one that sets RANK or WORLD_SIZE, else the innermost other launcher (see
/// launcher_starter).
std::optional<Starter> find_starter(const Variables& variable);

}  // namespace pdp::launch::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/environment.hpp>
#endif
