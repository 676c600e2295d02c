#pragma once

#include <concepts>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>

namespace pdp::engine {

/// Throws ConfigError if the communicator and the model use different GPUs, or if a CPU device has an invalid number of threads.
template <comm::Communicator C, class D>
void check_device(const C& world, const D& device) {
  if constexpr (std::same_as<D, cpu::Cpu>) cpu::check(device);
  if constexpr (comm::HasDeviceBuffers<C>)
    if (world.device() != device.index())
      throw ConfigError{text("rank ", world.rank(), ": the communicator uses GPU ", world.device(), ", but the model is on GPU ",
                             device.index(), "; create both for the same GPU")};
}

}  // namespace pdp::engine
