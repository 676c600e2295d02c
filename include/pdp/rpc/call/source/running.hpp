#pragma once

/// Definitions for pdp/rpc/call/core.hpp: the calls that a rank runs. See pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/promise_state.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

namespace detail {

/// Results of up to this many bytes are sent to the caller at once. Larger ones stay at their owner until a rank needs them.
inline constexpr std::size_t most_eager = std::size_t{1} << 14;

}  // namespace detail

PDP_INLINE void Core::pump(SlotId id) {
  while (true) {
    const auto found = slots_.find(id);
    if (found == slots_.end()) return;
    Slot& slot = found->second;
    if (slot.state == Slot::State::expected || slot.running || slot.sending > 0 || slot.calls.empty() || slot.calls.front()->missing > 0)
      return;
    const std::shared_ptr<Call> call = slot.running = std::move(slot.calls.front());
    slot.calls.pop_front();
    if (!call->visit) return ready_.push_back(call);
    // At once, not after the calls that are ready: another rank may wait for the value.
    if (slot.state == Slot::State::failed) slot.error_is_known = true;
    const std::shared_ptr<Call> keeper = call->visit(slot);
    --calls_;
    slot.running = keeper;
    if (keeper) return;
    drop_if_unused(id);
  }
}

PDP_INLINE bool Core::run_one() {
  if (ready_.empty()) return false;
  const std::shared_ptr<Call> call = std::move(ready_.front());
  ready_.pop_front();
  run(call);
  return true;
}

/// Makes the objects of a call free for their next calls.
PDP_INLINE void Core::end_call(const Call& call) {
  --calls_;
  const auto set_free = [this](SlotId object) {
    slots_.at(object).running.reset();
    pump(object);
    drop_if_unused(object);
  };
  if (call.target) set_free(call.target);
  for (const SlotId object : call.kept) set_free(object);
}

PDP_INLINE void Core::run(const std::shared_ptr<Call>& started) {
  Call& call = *started;
  void* object = nullptr;
  std::optional<Fault> fault = std::move(call.fault);
  if (call.target) {
    Slot& target = slots_.at(call.target);
    if (target.state == Slot::State::failed) target.error_is_known = true;
    if (target.state == Slot::State::failed) fault = target.fault;
    object = target.value.data.get();
    for (const auto& argument : call.own) *argument = target.value.data;
  }
  Value value;
  call.runs = true;
  frames_.push_back({&call});
  if (!fault) {
    const comm::TimePoint begin = comm::Clock::now();
    try {
      value = call.method->run(call.arguments.get(), object);
      if (value.later) value.later->take();
    } catch (...) {
      fault = Fault::current(text(call.method->name, " on ", who(rank())));
    }
    ran(call, begin);
  }
  frames_.pop_back();
  call.arguments.reset();
  end_call(call);
  if (!value.later || fault) return complete(call, std::move(value), std::move(fault));
  value.later->when_set([core = weak_from_this(), started](PromiseState& result) {
    const auto here = core.lock();
    if (!here) return;
    std::optional<Fault> late;
    try {
      if (result.error) std::rethrow_exception(result.error);
    } catch (...) {
      late = Fault::current(text(started->method->name, " on ", here->who(here->rank())));
    }
    here->complete(*started, std::move(result.value), std::move(late));
  });
}

PDP_INLINE void Core::complete(Call& call, Value value, std::optional<Fault> fault) {
  if (!call.result) {
    if (fault) {
      Writer writer;
      fault->write(writer);
      send(call.caller, {.kind = Head::Kind::failure}, std::move(writer));
    }
    return;
  }
  Slot& slot = slots_.at(call.result);
  slot.state = fault ? Slot::State::failed : Slot::State::ready;
  slot.value = std::move(value);
  if (fault) slot.fault = std::move(*fault);
  ++slot.sending;  // the slot stays while results are encoded, which may run other calls
  const auto forwards = std::exchange(slot.forwards, {});
  for (const int to : forwards) send_result(to, call.result, call.result.delivery(), slot, 0);
  if (call.wants != Head::Result::reference) {
    const auto served = static_cast<std::uint32_t>(forwards.size());
    if (slot.state == Slot::State::ready && (slot.weight == 0 || (call.wants == Head::Result::value && is_large(slot.value)))) {
      send(call.caller, {.kind = Head::Kind::ready, .served = served, .slot = call.result});
    } else {
      slot.error_is_known = true;
      send_result(call.caller, call.result, call.result, slot, served);
      slot.weight = 0;
    }
  }
  --slot.sending;
  pump(call.result);
  drop_if_unused(call.result);
}

PDP_INLINE bool Core::is_large(const Value& value) {
  if (value.type == nullptr) return false;
  Writer writer = Writer::measuring();
  value.type->write(writer, value.data.get());
  return writer.total() > detail::most_eager;
}

PDP_INLINE void Core::send_result(int to, SlotId id, SlotId as, const Slot& slot, std::uint32_t served) {
  const auto send_fault = [&](const Fault& fault) {
    Writer writer;
    fault.write(writer);
    send(to, {.kind = Head::Kind::failure, .served = served, .slot = as}, std::move(writer));
  };
  if (slot.state == Slot::State::failed) return send_fault(slot.fault);
  Writer writer;
  try {
    if (slot.value.type != nullptr) slot.value.type->write(writer, slot.value.data.get());
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {  // for example of a member travel() of the program
    return send_fault(Fault::current(text("the result of a call on ", who(rank()), " cannot be encoded")));
  }
  writer.keep(slot.value.data);
  std::function<void()> sent;
  if (const auto own = slots_.find(id); slot.is_object && own != slots_.end()) {  // the next call of the object may change it
    ++own->second.sending;
    sent = [this, id] {
      if (const auto found = slots_.find(id); found != slots_.end()) {
        --found->second.sending;
        pump(id);
        drop_if_unused(id);
      }
    };
  }
  send(to, {.kind = Head::Kind::value, .served = served, .slot = as}, std::move(writer), std::move(sent));
}

PDP_INLINE void Core::drop_if_unused(SlotId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  Slot& slot = found->second;
  if (slot.weight > 0 || slot.state == Slot::State::expected || slot.running || slot.sending > 0 || !slot.calls.empty()) return;
  if (slot.state == Slot::State::failed && !slot.error_is_known) {  // nothing has reported the error
    Writer writer;
    slot.fault.write(writer);
    send(slot.maker, {.kind = Head::Kind::failure}, std::move(writer));
  }
  const Value last = std::move(slot.value);  // its destructor may release references
  slots_.erase(found);
}

}  // namespace pdp::rpc
