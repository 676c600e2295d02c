#pragma once

/// Definitions for pdp/rpc/call/core.hpp: messages that arrive. See pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/wire/courier.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

PDP_INLINE Arrival Core::open(const Message& message) {
  const Head& head = message.head;
  Arrival arrival;
  switch (head.kind) {
    case Head::Kind::call:
      arrival = open_call(message);
      break;
    case Head::Kind::value:
    case Head::Kind::ready:
    case Head::Kind::failure:
      arrival = open_value(message);
      break;
    case Head::Kind::forward:
      arrival.complete = [this, head] { forwarded(head.slot, head.rank, head.result == Head::Result::reference); };
      break;
    case Head::Kind::release:
      arrival.complete = [this, releases = read_releases(message)] {
        for (const Release& each : releases) released(each);
      };
      break;
    case Head::Kind::grant:
      arrival.complete = [this, from = message.from, head] {
        constexpr std::uint64_t weight = std::uint64_t{1} << 40;  // so the sum of all grants does not overflow
        slots_[head.target].weight += weight;
        Writer writer;
        writer.put(weight);
        send(from, {.kind = Head::Kind::value, .slot = head.slot}, std::move(writer));
      };
      break;
    case Head::Kind::probe:
      arrival.complete = [this, head, path = std::string{reinterpret_cast<const char*>(message.values.data()), message.values.size()}] {
        chase(head.slot, {head.rank, head.wait, head.served, path});
      };
      break;
    case Head::Kind::end:
      arrival.complete = [this] { ended_ = true; };
      break;
    case Head::Kind::bye:
      break;
  }
  return {std::move(arrival.arrays), [this, complete = std::move(arrival.complete)] {
            ++handled_;
            complete();
          }};
}

PDP_INLINE Arrival Core::open_call(const Message& message) {
  const Head& head = message.head;
  const auto call = std::make_shared<Call>();
  call->method = &Method::find(head.method);
  call->caller = message.from;
  call->wants = head.result;
  call->target = head.target;
  call->result = head.slot;
  call->missing = 1;
  ++calls_;
  if (head.slot) {
    Slot& slot = slots_[head.slot];
    slot.maker = message.from;
    slot.is_object = head.result == Head::Result::reference;
    slot.maker_call = call;
  }
  if (head.target) slots_[head.target].calls.push_back(call);
  Arrival arrival;
  try {
    Reader reader{message.values, message.sizes, weak_from_this()};
    call->arguments = call->method->read(
        reader, [&](Awaited from, Passed passed, std::function<void(Reader&)> read, std::shared_ptr<std::shared_ptr<void>> local) {
          bind(call, from, passed, std::move(read), std::move(local));
        });
    reader.finish();
    arrival.arrays.assign(reader.arrays().begin(), reader.arrays().end());
  } catch (const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr && dynamic_cast<const std::length_error*>(&error) == nullptr) throw;
    call->fault = Fault::current(text("the arguments of ", call->method->name, " do not fit into the memory of ", who(rank())));
    arrival.arrays.assign(head.arrays, {});
  }
  arrival.complete = [this, call] { arrived(call); };
  return arrival;
}

PDP_INLINE void Core::bind(const std::shared_ptr<Call>& call, const Awaited& from, Passed passed, std::function<void(Reader&)> read,
                           std::shared_ptr<std::shared_ptr<void>> local) {
  if (passed == Passed::own_slot && from.slot == call->target) {
    call->own.push_back(std::move(local));
    return;
  }
  ++call->missing;
  if (passed == Passed::own_slot) {
    visit(from.slot, [this, call, slot = from.slot, local = std::move(local)](Slot& object) -> std::shared_ptr<Call> {
      if (object.state == Slot::State::failed)
        call->fault = object.fault;
      else
        *local = object.value.data;
      call->kept.push_back(slot);
      arrived(call);
      return call;
    });
    return;
  }
  call->needs.push_back(from);
  expect(from.slot.delivery(), {std::move(read), [this, call](const Outcome& outcome) {
                                  if (outcome.kind == Head::Kind::failure) call->fault = outcome.fault;
                                  arrived(call);
                                }});
}

/// Called for the call itself and for each argument.
PDP_INLINE void Core::arrived(const std::shared_ptr<Call>& call) {
  if (--call->missing > 0) return;
  if (call->target)
    pump(call->target);
  else
    ready_.push_back(call);
}

PDP_INLINE Arrival Core::open_value(const Message& message) {
  const Head& head = message.head;
  Outcome outcome{head.kind, head.served, {}};
  Reader reader{message.values, message.sizes, weak_from_this()};
  if (head.kind == Head::Kind::failure) outcome.fault = Fault::read(reader);
  if (!head.slot)  // the error of a one-way call
    return {{}, [this, fault = std::move(outcome.fault)] { report(fault); }};
  const auto expected = expected_.find(head.slot);
  Arrival arrival;
  if (expected != expected_.end()) {
    const auto expectation = std::make_shared<Expectation>(std::move(expected->second.front()));
    expected->second.pop_front();
    if (expected->second.empty()) expected_.erase(expected);
    if (head.kind == Head::Kind::value) {
      if (auto fault = read_value(*expectation, reader)) {
        outcome = {Head::Kind::failure, head.served, std::move(*fault)};
        arrival.arrays.assign(head.arrays, {});
      } else {
        arrival.arrays.assign(reader.arrays().begin(), reader.arrays().end());
      }
    }
    arrival.complete = [expectation, outcome] { expectation->done(outcome); };
    return arrival;
  }
  const auto early = std::make_shared<Early>();
  early->outcome = outcome;
  early->values.assign(message.values.begin(), message.values.end());
  try {
    for (const std::uint64_t size : message.sizes) early->arrays.emplace_back(static_cast<std::size_t>(size));
    arrival.arrays.assign(early->arrays.begin(), early->arrays.end());
  } catch (const std::bad_alloc&) {
    early->outcome = {Head::Kind::failure, head.served, Fault::current(text("a value does not fit into the memory of ", who(rank())))};
    early->arrays.clear();
    arrival.arrays.assign(head.arrays, {});
  }
  arrival.complete = [this, early, slot = head.slot] {
    if (const auto now = expected_.find(slot); now != expected_.end()) {
      Expectation expectation = std::move(now->second.front());
      now->second.pop_front();
      if (now->second.empty()) expected_.erase(now);
      early_[slot].push_front(std::move(*early));
      expect(slot, std::move(expectation));
    } else {
      early_[slot].push_back(std::move(*early));
    }
  };
  return arrival;
}

PDP_INLINE void Core::visit(SlotId object, std::function<std::shared_ptr<Call>(Slot&)> visit) {
  const auto call = std::make_shared<Call>();
  call->visit = std::move(visit);
  call->target = object;
  ++calls_;
  slots_[object].calls.push_back(call);
  pump(object);
}

PDP_INLINE void Core::forwarded(SlotId id, int to, bool stays) {
  if (stays) {
    visit(id, [this, id, to](Slot& object) -> std::shared_ptr<Call> {
      send_result(to, id, id.delivery(), object, 0);
      return nullptr;
    });
    return;
  }
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;  // its caller has the value, learns that it was not forwarded, and forwards it itself
  if (found->second.state == Slot::State::expected)
    found->second.forwards.push_back(to);
  else
    send_result(to, id, id.delivery(), found->second, 0);
}

PDP_INLINE std::vector<Core::Release> Core::read_releases(const Message& message) {
  Reader reader{message.values, message.sizes};
  std::vector<Release> releases;
  while (reader.left() > 0) {
    Release& each = releases.emplace_back();
    each.slot.number = reader.get<std::uint64_t>();
    each.slot.maker = reader.get<std::int32_t>();
    each.weight = reader.get<std::uint64_t>();
    each.is_reference = reader.flag();
    each.is_silent = reader.flag();
  }
  reader.finish();
  return releases;
}

PDP_INLINE void Core::released(const Release& release) {
  if (release.is_reference) slots_[release.slot];  // the release may overtake the construction of the object
  const auto found = slots_.find(release.slot);
  if (found == slots_.end()) return;  // a result that has been sent already
  found->second.weight -= std::min(release.weight, found->second.weight);
  if (release.is_silent) found->second.error_is_known = true;
  drop_if_unused(release.slot);
}

}  // namespace pdp::rpc
