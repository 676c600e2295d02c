#pragma once

#include <concepts>

#include <pdp/comm/any.hpp>
#include <pdp/comm/communicator.hpp>

namespace pdp::engine {

/// Whether an engine calls a communicator through comm::Any: each whose calls take memory of the host. So engines are compiled once,
/// whatever connects the ranks. A call costs one more jump, some nanoseconds of the microsecond or more that ranks need to meet.
template <class C, class D>
inline constexpr bool calls_through_any = false;
template <comm::Communicator C, class D>
requires(D::uses_host_memory && !comm::HasDeviceBuffers<C> && !comm::QueuesMessages<C> && !std::same_as<C, comm::Any> && requires {
  requires comm::Calls<typename C::Erased>;
  requires comm::AnyCalls::holds<typename C::Work>;
}) inline constexpr bool calls_through_any<C, D> = true;

/// The world of a trainer as its engine calls it. Borrows the communicator.
template <comm::Communicator C, class D>
class World {
 public:
  using Comm = C;
  explicit World(C& world) : world_{world} {}
  [[nodiscard]] Comm& operator*() const { return world_; }
  [[nodiscard]] Comm* operator->() const { return &world_; }

 private:
  C& world_;
};

template <comm::Communicator C, class D>
requires calls_through_any<C, D>
class World<C, D> {
 public:
  using Comm = comm::Any;
  explicit World(C& world) : world_{comm::Any::borrow(world)} {}
  [[nodiscard]] Comm& operator*() { return world_; }
  [[nodiscard]] Comm* operator->() { return &world_; }

 private:
  comm::Any world_;
};

}  // namespace pdp::engine
