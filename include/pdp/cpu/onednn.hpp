#pragma once

/// Makes oneDNN multiply matrices of floats. Include this header in one or more sources of the program, and link oneDNN (-ldnnl). CMake's
/// target pdp::onednn does the same without an include.

#include <pdp/cpu/onednn/source.hpp>
