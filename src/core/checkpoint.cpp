// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/checkpoint/source/folder.hpp>
#include <pdp/checkpoint/source/hash.hpp>
#include <pdp/checkpoint/source/manifest.hpp>
#include <pdp/checkpoint/source/pieces.hpp>
#include <pdp/checkpoint/source/save.hpp>
#include <pdp/checkpoint/source/state.hpp>
