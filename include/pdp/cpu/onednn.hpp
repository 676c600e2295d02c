#pragma once

/// Multiplies matrices of floats by oneDNN in a program that has a source which includes this header, and links oneDNN (-ldnnl). CMake's
/// target pdp::onednn does the same without an include.

#include <pdp/cpu/onednn/source.hpp>
