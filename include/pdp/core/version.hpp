#pragma once

namespace pdp {

/// The version of pdp. CMakeLists.txt reads it from here.
inline constexpr char version[] = "0.1.0";

}  // namespace pdp
