#pragma once

#include <pdp/comm/communicator.hpp>

namespace pdp::engine {

/// For as long as it lives, the calls of a communicator of devices come after what a device was given before each. A world may serve
/// several models, each on a stream of its own, so nothing of that is left behind. Where calls take memory of the host, it does nothing.
template <comm::Communicator C, class D>
class AfterDevice {
 public:
  AfterDevice(C&, const D&) {}
};
template <comm::Communicator C, class D>
requires comm::HasDeviceBuffers<C>
class AfterDevice<C, D> {
 public:
  /// It borrows the communicator.
  AfterDevice(C& world, const D& device) : world_{world}, before_{world.caller()} { world.caller(device.stream()); }
  AfterDevice(const AfterDevice&) = delete;
  AfterDevice& operator=(const AfterDevice&) = delete;
  ~AfterDevice() { world_.caller(before_); }

 private:
  C& world_;
  decltype(world_.caller()) before_;
};

}  // namespace pdp::engine
