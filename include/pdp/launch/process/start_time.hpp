#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// Returns the seconds since the machine was started, those in which it was suspended included.
[[nodiscard]] double machine_time();

/// Returns the machine_time() at which pdp's launcher has started, which it tells its ranks by PDP_STARTED (milliseconds). Restarts do not
/// change it. If there is no launcher, returns that of this process.
[[nodiscard]] double start_time(const Variables& environment);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/start_time.hpp>
#endif
