// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/checkpoint/source/interchange.hpp>
#include <pdp/checkpoint/source/safetensors.hpp>
#include <pdp/data/source/safetensors_classification.hpp>
