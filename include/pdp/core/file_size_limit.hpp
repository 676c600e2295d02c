#pragma once

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Makes a write beyond the file size limit (ulimit -f) fail with EFBIG, as a write to a full disk fails with ENOSPC. By default the system
/// sends SIGXFSZ, which ends the process. Keeps a handler that the program has installed. Installs an empty handler and not SIG_IGN, which
/// child processes would inherit.
void report_file_size_limit();

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/file_size_limit.hpp>
#endif
