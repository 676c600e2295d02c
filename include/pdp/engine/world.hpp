#pragma once

#include <concepts>

#include <pdp/comm/any.hpp>
#include <pdp/comm/communicator.hpp>

namespace pdp::engine {

/// Whether an engine calls a communicator through comm::Any: true if its calls take host memory. So an engine is compiled once for all
/// these communicators. The cost is one indirect jump a call: some nanoseconds, while a rendezvous takes a microsecond or more.
template <class C, class D>
inline constexpr bool calls_through_any = false;
template <comm::Communicator C, class D>
requires(D::uses_host_memory && !comm::HasDeviceBuffers<C> && !comm::QueuesMessages<C> && !std::same_as<C, comm::Any> && requires {
  requires comm::Calls<typename C::Erased>;
  requires comm::AnyCalls::holds<typename C::Work>;
}) inline constexpr bool calls_through_any<C, D> = true;

/// A trainer's world, as the communicator type that its engine calls. Borrows the communicator.
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
