#pragma once

namespace pdp::host {

/// The processor that runs the program. One thread computes.
struct Cpu {};

}  // namespace pdp::host
