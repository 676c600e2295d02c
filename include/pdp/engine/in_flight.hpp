#pragma once

#include <exception>
#include <string>
#include <thread>

#include <pdp/comm/communicator.hpp>

namespace pdp::engine {

/// Device work that the host has not synchronised with yet. It may contain calls that wait for ever, for a rank that has failed. So the
/// host does not block: it polls the device, the world and the clock. It frees no memory that the device still uses. Borrows the world and
/// the device. If calls take host memory, or if the rank is alone (comm::Self), only synchronise_so_far() waits.
template <comm::Communicator C, class D>
class InFlight {
 public:
  InFlight(C& world, const D& device) : world_{world}, device_{device} {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  /// Waits for the work in flight until the deadline. If an exception is unwinding the stack, aborts the world instead, unless the device
  /// is idle.
  ~InFlight() {
    if constexpr (comm::HasDeviceBuffers<C>) leave();
  }

  /// Records that the device is given a list of instructions. `has_calls`: other ranks take part in it.
  void begin(bool has_calls) { has_calls_ = has_calls_ || has_calls; }

  /// Waits until the device has finished all its work.
  void synchronise() {
    if constexpr (comm::HasDeviceBuffers<C>) {
      wait_until([this] { return device_.is_idle(); });
      has_calls_ = false;
    }
  }
  /// Waits until the device has finished its work so far, in the middle of a list whose calls remain in flight.
  void synchronise_so_far() {
    if constexpr (comm::HasDeviceBuffers<C>)
      wait_until([this] { return device_.is_idle(); });
    else if constexpr (requires { device_.synchronize(); })
      device_.synchronize();
  }
  /// Waits until look() returns true. At the deadline, aborts the world and throws Timeout. If other ranks take part in the work in flight,
  /// also throws the world's error when the world has failed.
  template <class Look>
  void wait_until(const Look& look) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      const auto begin = comm::Clock::now();
      while (!look()) {
        if (has_calls_) world_.progress();  // without calls in flight, other ranks may have left
        if (comm::Clock::now() - begin >= world_.deadline()) {
          const std::string reason =
              text("rank ", world_.rank(), " has waited for its device until its deadline; another rank has failed or makes other calls, ",
                   "or a step needs a longer deadline (PDP_DEADLINE=SECONDS)");
          world_.abort(reason);
          throw Timeout{reason};
        }
        std::this_thread::yield();
      }
    }
  }

 private:
  void leave() noexcept {
    if (!has_calls_) return;
    try {
      if (std::uncaught_exceptions() <= exceptions_) return synchronise();
      if (device_.is_idle()) return;
    } catch (const Error&) {  // the world or the device has failed
    }
    world_.abort(text("rank ", world_.rank(), " has thrown an error while its calls were in flight"));
  }

  C& world_;
  const D& device_;
  bool has_calls_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace pdp::engine
