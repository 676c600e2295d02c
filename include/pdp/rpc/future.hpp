#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/error.hpp>

namespace pdp::rpc {

namespace detail {

/// The result of a call on the rank that made the call.
struct Pending {
  enum class State : std::uint8_t { in_flight, at_owner, here, failed };

  std::weak_ptr<Core> core;
  SlotId slot;
  int owner = -1;
  std::string_view function;  // its name, for messages
  State state = State::in_flight;
  bool abandoned = false;   // no Future waits for it
  bool is_silent = false;   // its error is not reported
  bool was_thrown = false;  // its error has been
  Value value;
  Fault fault;
  std::vector<int> forwards;  // ranks to which the owner was asked to send it while it was in flight

  void done(const Outcome& outcome);
  /// Waits until the value is here. Throws the error of the call.
  void wait(const std::shared_ptr<Pending>& self, const std::function<void(Reader&)>& read, comm::TimePoint until);
  /// Encodes a reference to the result for the rank `to`.
  void refer(Core& caller, int to, Writer& writer, std::vector<std::function<void()>>& after);
  [[noreturn]] void raise();
  void abandon(bool silently = false) noexcept;
};

}  // namespace detail

/// The result of a remote call in flight. Move-only. Use it on the thread of its rank, and destroy it before its Node ends.
///
/// A Future can be an argument of further calls, before the result exists: the rank that computes the result then sends it directly to
/// the rank that needs it (promise pipelining). If a Future is destroyed before get(), and not by an exception, an error of its call is
/// thrown by the next call of this rank or at the end of the job.
template <class R>
class [[nodiscard]] Future {
 public:
  Future() = default;
  Future(Future&&) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    if (pending_ && pending_ != other.pending_) pending_->abandon();
    pending_ = std::move(other.pending_);
    return *this;
  }
  ~Future() {
    if (pending_) pending_->abandon();
  }

  /// Returns whether get() would return or throw without waiting for another rank. Runs calls of other ranks that have arrived.
  [[nodiscard]] bool ready() {
    check();
    if (const auto core = pending_->core.lock(); core && pending_->state == detail::Pending::State::in_flight) core->progress();
    return pending_->state == detail::Pending::State::here || pending_->state == detail::Pending::State::failed;
  }
  /// Waits for the result and returns it. This rank runs calls of other ranks while it waits. Throws the error of the call, or Timeout if
  /// the result does not arrive within the duration (the deadline of the communicator by default). The Future is empty afterwards.
  R get() {
    check();
    const auto core = pending_->core.lock();
    return get(core ? core->deadline() : comm::Duration{});
  }
  R get(comm::Duration within) {
    check();
    const auto pending = pending_;
    pending->wait(pending, reader_of(*pending), comm::later(comm::Clock::now(), within));
    pending_.reset();
    if constexpr (!std::is_void_v<R>) {
      R& value = *static_cast<R*>(pending->value.data.get());
      if constexpr (std::copy_constructible<R>)
        if (pending->value.data.use_count() > 1) return value;  // a message that is being sent borrows it
      return std::move(value);
    }
  }
  /// Returns whether there is a result to wait for.
  explicit operator bool() const { return pending_ != nullptr; }

  /// For the library: makes the future of a call that has just been sent.
  static Future expect(const std::shared_ptr<Core>& core, SlotId slot, int owner, std::string_view function) {
    Future future;
    future.pending_ = std::make_shared<detail::Pending>();
    auto& pending = *future.pending_;
    pending.core = core;
    pending.slot = slot;
    pending.owner = owner;
    pending.function = function;
    if constexpr (!std::is_void_v<R>) pending.value = Value::of(std::make_shared<R>());
    core->expect(slot, {[state = future.pending_](Reader& reader) { reader_of (*state)(reader); },
                        [state = future.pending_](const Outcome& outcome) { state->done(outcome); }});
    return future;
  }
  [[nodiscard]] SlotId slot() const { return pending_->slot; }
  /// For the library: gives up the result and its error, which another call reports.
  void ignore() {
    check();
    std::exchange(pending_, nullptr)->abandon(true);
  }
  /// For the library: encodes this result as an argument of a call to the rank `to`.
  void pass(Core& core, int to, Writer& writer, std::vector<std::function<void()>>& after) const {
    check();
    pending_->refer(core, to, writer, after);
  }

 private:
  static std::function<void(Reader&)> reader_of(detail::Pending& pending) {
    if constexpr (std::is_void_v<R>)
      return [](Reader&) {};
    else
      return [&pending](Reader& reader) { Codec<R>::read(reader, *static_cast<R*>(pending.value.data.get())); };
  }
  void check() const {
    if (!pending_) throw EmptyReference{"this Future has no result: it is new, was moved from, or its result has been taken by get()"};
  }

  std::shared_ptr<detail::Pending> pending_;
};

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/source/future.hpp>
#endif
