#pragma once

#include <pdp/core/requirements.hpp>

/// pdp is header-only: a header includes the inline definitions of its declarations. Many definitions depend on no type of the program, so
/// a program may compile them once instead of in each of its sources:
///
/// - PDP_SEPARATE_COMPILATION leaves them out of every header. The program then also compiles src/core/*.cpp. If its ranks are processes,
///   it compiles src/launch.cpp and the source of each backend that it uses, such as src/tcp.cpp. If it reads or writes safetensors files,
///   it compiles src/safetensors.cpp; for CSV files src/csv.cpp, and for .npz files src/npz.cpp.
/// - PDP_SEPARATE_CORE leaves out the definitions of src/core, PDP_SEPARATE_LAUNCH those that start processes, and PDP_SEPARATE_TCP and its
///   siblings those of one backend or file format. CMake's targets define these macros and link libraries with the definitions: pdp::pdp
///   defines PDP_SEPARATE_CORE, and pdp::tcp also PDP_SEPARATE_LAUNCH and PDP_SEPARATE_TCP.
///
/// The definitions of a header are in the folder source/ beside it, in a header of the same name; those of a backend are in its source.hpp.
#ifdef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_CORE 1
#define PDP_SEPARATE_LAUNCH 1
#define PDP_SEPARATE_SHM 1
#define PDP_SEPARATE_TCP 1
#define PDP_SEPARATE_HIERARCHICAL 1
#define PDP_SEPARATE_SAFETENSORS 1
#define PDP_SEPARATE_CSV 1
#define PDP_SEPARATE_NPZ 1
#define PDP_SEPARATE_GLOO 1
#define PDP_INLINE
#else
#define PDP_INLINE inline
#endif
