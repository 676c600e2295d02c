#pragma once

#include <exception>
#include <string>
#include <thread>

#include <pdp/comm/communicator.hpp>

namespace pdp::engine {

/// What a device was given and the host has not waited for. Where ranks on devices call each other, a list of instructions may hold calls
/// that wait for ranks which never come: so the host looks at the device, the world and the clock, and does not let go of memory that the
/// device still works on. Borrows the world and the device. Where calls take memory of the host, or a rank is alone (comm::Self), it waits
/// for nothing.
template <comm::Communicator C, class D>
class InFlight {
 public:
  InFlight(C& world, const D& device) : world_{world}, device_{device} {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  /// What was begun is waited for, until the deadline; by a rank that leaves by an exception it is given up.
  ~InFlight() {
    if constexpr (comm::HasDeviceBuffers<C>) leave();
  }

  /// The device is given a list of instructions. `has_calls`: in which other ranks have a part.
  void begin(bool has_calls) { has_calls_ = has_calls_ || has_calls; }

  /// Until the device has carried out all that it was given.
  void synchronise() {
    if constexpr (comm::HasDeviceBuffers<C>) {
      wait_until([this] { return device_.is_idle(); });
      has_calls_ = false;
    }
  }
  /// Until the device is through with what it was given so far, in the middle of a list, whose calls go on meanwhile.
  void synchronise_so_far() {
    if constexpr (comm::HasDeviceBuffers<C>)
      wait_until([this] { return device_.is_idle(); });
    else if constexpr (requires { device_.synchronize(); })
      device_.synchronize();
  }
  /// Until the device has come so far, or the deadline is over (Timeout, which ends the world), or, where other ranks have a part in what
  /// is in flight, the world has failed.
  template <class Look>
  void wait_until(const Look& look) {
    if constexpr (comm::HasDeviceBuffers<C>) {
      const auto begin = comm::Clock::now();
      while (!look()) {
        if (has_calls_) world_.progress();  // the ranks may have gone of which nothing is wanted
        if (comm::Clock::now() - begin >= world_.deadline()) {
          const std::string reason = text(
              "rank ", world_.rank(), " has waited for its device, and so for the other ranks, as long as its deadline allows; either one ",
              "has failed, or makes other calls, or a step needs a longer deadline (PDP_DEADLINE=SECONDS)");
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
    } catch (const Error&) {  // the world has failed, or the device
    }
    world_.abort(text("rank ", world_.rank(), " has left its model by an error, in the middle of calls"));
  }

  C& world_;
  const D& device_;
  bool has_calls_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace pdp::engine
