#pragma once

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Lets a write beyond the limit of a file's size (ulimit -f) fail with EFBIG, as one on a full disk fails with ENOSPC. By default the
/// system sends SIGXFSZ, which ends the process. A program's own handler stays. The handler is empty and not SIG_IGN, which programs that
/// this one starts would inherit.
void report_file_size_limit();

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/file_size_limit.hpp>
#endif
