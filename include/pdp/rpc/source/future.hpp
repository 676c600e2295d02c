#pragma once

/// Definitions for pdp/rpc/future.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/error.hpp>
#include <pdp/rpc/future.hpp>

namespace pdp::rpc::detail {

PDP_INLINE void Pending::done(const Outcome& outcome) {
  const auto caller = core.lock();
  if (!caller) return;
  state = outcome.kind == Head::Kind::value ? State::here : outcome.kind == Head::Kind::ready ? State::at_owner : State::failed;
  fault = outcome.fault;
  if (state == State::at_owner) return;
  for (std::size_t i = outcome.served; i < forwards.size(); ++i) {  // the owner was asked too late
    if (state == State::here)
      caller->pass_on(forwards[i], slot, value);
    else
      caller->pass_on(forwards[i], slot, fault);
  }
  if (abandoned && !is_silent && state == State::failed) caller->report(fault);
}

/// Counts the time until its end as a wait for a method.
struct WaitingTime {
  std::shared_ptr<Core> core;
  std::string_view method;
  comm::TimePoint begin = comm::Clock::now();

  WaitingTime(std::shared_ptr<Core> waiting, std::string_view for_method) : core{std::move(waiting)}, method{for_method} {}
  WaitingTime(WaitingTime&&) = delete;
  ~WaitingTime() { core->waited(method, comm::Clock::now() - begin); }
};

PDP_INLINE void Pending::wait(const std::shared_ptr<Pending>& self, const std::function<void(Reader&)>& read, comm::TimePoint until) {
  const auto caller = core.lock();
  if (!caller) throw EmptyReference{"the Node of this Future has ended"};
  const WaitingTime time{caller, function};
  const auto what = [this, caller] { return text("the result of ", function, " on ", caller->who(owner)); };
  caller->wait([this] { return state != State::in_flight; }, until, what, {slot, owner});
  if (state == State::at_owner) {
    state = State::in_flight;
    forwards.clear();
    caller->expect(slot.delivery(), {read, [self](const Outcome& outcome) { self->done(outcome); }});
    caller->forward(owner, slot, caller->rank(), false);
    caller->release(owner, slot, Slot::whole, false);
    caller->wait([this] { return state != State::in_flight; }, until, what, {slot, owner});
  }
  if (state == State::failed) raise();
}

PDP_INLINE void Pending::raise() {
  was_thrown = true;
  fault.raise();
}

PDP_INLINE void Pending::refer(Core& caller, int to, Writer& writer, std::vector<std::function<void()>>& after) {
  if (state == State::failed) raise();
  if (state == State::here && value.type != nullptr) {
    writer.put(Passed::value);
    value.type->write(writer, value.data.get());
    writer.keep(value.data);
    return;
  }
  writer.put(Passed::other_slot);
  writer.put(slot);
  writer.put(std::int32_t{owner});
  after.emplace_back([this, &caller, to] {
    if (state == State::in_flight) forwards.push_back(to);
    caller.forward(owner, slot, to, false);
  });
}

PDP_INLINE void Pending::abandon(bool silently) noexcept {
  const auto caller = core.lock();
  abandoned = true;
  is_silent = silently || std::uncaught_exceptions() > 0;  // the exception that ends this Future matters more than the error of its call
  if (!caller || state == State::here) return;
  try {
    if (state == State::failed) {
      if (!was_thrown && !is_silent) caller->report(fault);
      return;
    }
    caller->release(owner, slot, Slot::whole, false);
  } catch (...) {  // the world has failed, and its error reaches this rank in its next call
  }
}

}  // namespace pdp::rpc::detail
