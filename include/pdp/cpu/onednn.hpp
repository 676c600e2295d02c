#pragma once

/// Makes oneDNN multiply matrices of floats, in a program with a source that includes this header and that links oneDNN (-ldnnl). CMake's
/// target pdp::onednn does the same without an include.

#include <pdp/cpu/onednn/source.hpp>
