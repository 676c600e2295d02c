#pragma once

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// Gives each thread that this process starts from now on a stack of 8 MiB or more, as most systems give to a program: those of ranks, and
/// those that run a dataset or multiply matrices. Without it, a thread has what `ulimit -s` says, or 128 KiB with musl, which is too little
/// for a product of matrices. Memory is taken only for what a thread uses.
void widen_thread_stacks();

/// Makes room for the stack of a rank that is a process: raises the soft limit (ulimit -S -s) to 8 MiB, or to the hard limit. Throws
/// ConfigError if that is less than 512 KiB, with which a product of matrices would end the process.
void widen_process_stack();

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/process/source/stack.hpp>
#endif
