#pragma once

namespace pdp {

/// Of this library. CMake's project takes its own from here.
inline constexpr char version[] = "0.1.0";

}  // namespace pdp
