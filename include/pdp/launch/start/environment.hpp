#pragma once

#include <optional>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch::detail {

/// Returns the launcher of this process: the one that has set RANK or WORLD_SIZE, else the innermost other launcher (see
/// launcher_starter). Returns nothing if there is none.
std::optional<Starter> find_starter(const Variables& variable);

}  // namespace pdp::launch::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/environment.hpp>
#endif
