#pragma once

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Raises the stack size of threads that this process starts from now on to at least 8 MiB, which most systems give to a program. These are
/// the threads of ranks, and those that load data or multiply matrices. Otherwise a thread has the stack that `ulimit -s` sets, or 128
/// KiB with musl, which is too little for a matrix product. Memory is taken only as a thread uses it.
void widen_thread_stacks();

/// Raises the soft stack limit of this process (ulimit -S -s) to 8 MiB, or to the hard limit, for a rank that is a process. Throws
/// ConfigError if the limit is then below 512 KiB, with which a matrix product would crash the process.
void widen_process_stack();

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/stack.hpp>
#endif
