#pragma once

/// pdp is header-only: the header of a backend that connects processes ends with its definitions, which are inline. They depend on no type
/// of a program, so a program of several sources may compile them once instead:
///
/// - PDP_SEPARATE_COMPILATION leaves them out of every header. The program then also compiles src/launch.cpp and the source of each backend
///   that it uses, such as src/tcp.cpp.
/// - PDP_SEPARATE_TCP does the same for one backend, and PDP_SEPARATE_LAUNCH for the start of processes. CMake's target pdp::tcp defines
///   these two, and links libraries in which the definitions are compiled.
#ifdef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_LAUNCH 1
#define PDP_SEPARATE_SHM 1
#define PDP_SEPARATE_TCP 1
#define PDP_SEPARATE_HIERARCHICAL 1
#define PDP_SEPARATE_GLOO 1
#define PDP_INLINE
#else
#define PDP_INLINE inline
#endif
