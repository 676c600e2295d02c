#pragma once

/// Definitions for pdp/rpc/call/core.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/wire/courier.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

namespace detail {

/// Results of up to this many bytes are sent to the caller at once. Larger ones stay at their owner until a rank needs them.
inline constexpr std::size_t most_eager = std::size_t{1} << 14;

PDP_INLINE void check_names(const std::vector<std::string>& names, int size) {
  if (as_int(names.size()) != size)
    throw ConfigError{
        text("remote calls: ", names.size(), " names were given for ", size, " ranks; start as many ranks as there are names")};
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) throw ConfigError{"remote calls: the name of a rank is empty"};
    if (std::find(name + 1, names.end(), *name) != names.end())
      throw ConfigError{text("remote calls: two ranks have the name ", in_quotes(*name), "; each rank needs a name of its own")};
  }
}

}  // namespace detail

PDP_INLINE Core::Core(comm::Any group, std::vector<std::string> names)
    : names_{std::move(names)},
      collectives_{group.split(0, group.rank())},
      courier_{(detail::check_names(names_, group.size()), Method::check_table(), std::move(group)),
               [this](const Message& message) { return open(message); }} {}

PDP_INLINE Core::~Core() = default;

PDP_INLINE const std::string& Core::name(int rank) const { return names_[as_size(rank)]; }

PDP_INLINE int Core::find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return as_int(found - names_.begin());
  std::string all;
  for (const std::string& each : names_) all += text(all.empty() ? "" : ", ", each);
  throw ConfigError{text("remote calls: no rank has the name ", in_quotes(name), "; the names are ", all)};
}

PDP_INLINE std::string Core::who(int rank) const { return text("rank ", rank, " (", name(rank), ")"); }

// ---- Calls of this rank ----

PDP_INLINE std::uint64_t Core::send(int to, const Head& head, Writer values, std::function<void()> sent) {
  ++sent_;
  return courier_.send(to, head, std::move(values), std::move(sent));
}

PDP_INLINE std::uint64_t Core::call(int to, Head head, Writer arguments) {
  head.kind = Head::Kind::call;
  return send(to, head, std::move(arguments));
}
PDP_INLINE void Core::forward(int owner, SlotId slot, int to, bool stays) {
  send(owner, {.kind = Head::Kind::forward, .result = stays ? Head::Result::reference : Head::Result::value, .rank = to, .slot = slot});
}
PDP_INLINE void Core::pass_on(int to, SlotId slot, const Value& value) {
  Slot copy;
  copy.state = Slot::State::ready;
  copy.value = value;
  send_result(to, slot, slot.delivery(), copy, 0);
}
PDP_INLINE void Core::pass_on(int to, SlotId slot, const Fault& fault) {
  Slot copy;
  copy.state = Slot::State::failed;
  copy.fault = fault;
  send_result(to, slot, slot.delivery(), copy, 0);
}
PDP_INLINE void Core::release(int owner, SlotId slot, std::uint64_t weight, bool is_reference) {
  const auto result = is_reference ? Head::Result::reference : Head::Result::value;
  send(owner, {.kind = Head::Kind::release, .result = result, .slot = slot, .weight = weight});
}
PDP_INLINE void Core::report(Fault fault) {
  if (!pending_) pending_ = std::move(fault);
}
PDP_INLINE std::uint64_t Core::more_weight(int owner, SlotId slot) {
  const SlotId answer = new_slot();
  const auto weight = std::make_shared<std::uint64_t>(0);
  expect(answer, {[weight](Reader& reader) { *weight = reader.get<std::uint64_t>(); }, [](const Outcome&) {}});
  send(owner, {.kind = Head::Kind::grant, .target = slot, .slot = answer});
  wait([&] { return *weight > 0; }, comm::later(comm::Clock::now(), deadline()), [] { return std::string{"the owner of an object"}; });
  return *weight;
}
PDP_INLINE void Core::stop_borrowing(int to, std::uint64_t number) {
  courier_.poll();
  if (courier_.borrows(to, number)) courier_.abort(text(who(rank()), " has given up a remote call before its arguments were sent"));
}

PDP_INLINE void Core::expect(SlotId slot, Expectation expectation) {
  const auto early = early_.find(slot);
  if (early == early_.end()) {
    expected_[slot].push_back(std::move(expectation));
    return;
  }
  const Early value = std::move(early->second.front());
  early->second.pop_front();
  if (early->second.empty()) early_.erase(early);
  Outcome outcome = value.outcome;
  if (outcome.kind == Head::Kind::value) {
    std::vector<std::uint64_t> sizes;
    for (const auto& array : value.arrays) sizes.push_back(array.size());
    Reader reader{value.values, sizes, weak_from_this()};
    if (auto fault = read_value(expectation, reader)) outcome = {Head::Kind::failure, outcome.served, std::move(*fault)};
    for (std::size_t i = 0; outcome.kind == Head::Kind::value && i < value.arrays.size(); ++i)
      std::memcpy(reader.arrays()[i].data(), value.arrays[i].data(), reader.arrays()[i].size());
  }
  expectation.done(outcome);
}

/// Decodes a value. Returns a fault if there is no memory for it.
PDP_INLINE std::optional<Fault> Core::read_value(const Expectation& expectation, Reader& reader) const {
  try {
    expectation.read(reader);
    reader.finish();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return Fault::current(text("a value does not fit into the memory of ", who(rank())));
  } catch (const std::length_error&) {
    return Fault::current(text("a value does not fit into the memory of ", who(rank())));
  }
}

PDP_INLINE Value Core::local(SlotId slot) {
  const auto until = comm::later(comm::Clock::now(), deadline());
  wait(
      [&] {
        const auto found = slots_.find(slot);
        return found != slots_.end() && found->second.state != Slot::State::expected;
      },
      until, [] { return std::string{"the construction of a local object"}; });
  Slot& found = slots_.at(slot);
  if (found.state == Slot::State::failed) {
    found.error_is_known = true;
    found.fault.raise();
  }
  return found.value;
}

// ---- Messages that arrive ----

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
      arrival.complete = [this, head] { released(head.slot, head.weight, head.result == Head::Result::reference); };
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
        chase(head.slot, {head.rank, head.weight, head.served, path});
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

PDP_INLINE void Core::released(SlotId id, std::uint64_t weight, bool is_reference) {
  if (is_reference) slots_[id];  // the release may overtake the construction of the object
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;  // a result that has been sent already
  found->second.weight -= std::min(weight, found->second.weight);
  drop_if_unused(id);
}

// ---- Running calls ----

PDP_INLINE void Core::pump(SlotId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  Slot& slot = found->second;
  if (slot.state == Slot::State::expected || slot.running || slot.sending > 0 || slot.calls.empty() || slot.calls.front()->missing > 0)
    return;
  slot.running = slot.calls.front();
  slot.calls.pop_front();
  ready_.push_back(slot.running);
}

PDP_INLINE bool Core::run_one() {
  if (ready_.empty()) return false;
  const std::shared_ptr<Call> call = std::move(ready_.front());
  ready_.pop_front();
  run(*call);
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

PDP_INLINE void Core::run(Call& call) {
  void* object = nullptr;
  std::optional<Fault> fault = std::move(call.fault);
  if (call.target) {
    Slot& target = slots_.at(call.target);
    if (target.state == Slot::State::failed) target.error_is_known = true;
    if (call.visit) {
      if (const auto keeper = call.visit(target)) {
        target.running = keeper;
        --calls_;
      } else {
        end_call(call);
      }
      return;
    }
    if (target.state == Slot::State::failed) fault = target.fault;
    object = target.value.data.get();
    for (const auto& argument : call.own) *argument = target.value.data;
  }
  Value value;
  call.runs = true;
  frames_.push_back({&call});
  if (!fault) {
    try {
      value = call.method->run(call.arguments.get(), object);
    } catch (...) {
      fault = Fault::current(text(call.method->name, " on ", who(rank())));
    }
  }
  frames_.pop_back();
  call.arguments.reset();
  end_call(call);
  complete(call, std::move(value), std::move(fault));
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

// ---- Waiting ----

PDP_INLINE void Core::raise_pending() {
  if (pending_) std::exchange(pending_, {})->raise();
}

PDP_INLINE void Core::progress() {
  courier_.poll();
  for (auto calls = ready_.size(); calls > 0 && run_one(); --calls) {  // those that become ready meanwhile wait for the next time
  }
}

PDP_INLINE void Core::wait(const std::function<bool()>& ready, comm::TimePoint until, const std::function<std::string()>& what,
                           Awaited awaited) {
  using namespace std::chrono_literals;
  const std::size_t frame = frames_.size();  // of the call that waits, if it is one; further calls run above it
  struct Restore {
    Core& core;
    std::size_t frame;
    Frame before;
    ~Restore() {
      if (frame > 0) core.frames_[frame - 1] = std::move(before);
    }
  };
  const Restore restore{*this, frame, frame > 0 ? frames_[frame - 1] : Frame{}};
  const std::uint64_t number = ++waits_;
  if (frame > 0) frames_[frame - 1] = {frames_[frame - 1].call, awaited, number, {}};
  comm::TimePoint active = comm::Clock::now();
  comm::TimePoint probe = awaited.slot && frame > 0 ? active + 100ms : comm::TimePoint::max();
  while (!ready()) {
    const bool moved = courier_.poll();
    if (ready()) break;
    if (frame > 0 && !frames_[frame - 1].cycle.empty()) throw Error{frames_[frame - 1].cycle};
    if (run_one() || moved) {
      if (polling_ > comm::Duration{}) active = comm::Clock::now();
      continue;
    }
    const comm::TimePoint now = comm::Clock::now();
    if (now >= until)
      throw Timeout{text(who(rank()), " has waited for ", what(), " until its deadline; if it needs more time, set PDP_DEADLINE=SECONDS")};
    if (now >= probe) {
      send_probe(awaited, {rank(), number, 0, text(frames_[frame - 1].call->method->name, " on ", who(rank()), " waits for ", what())});
      probe = now + 1s;
      continue;
    }
    if (polling_ > comm::Duration{} && now - active < polling_) continue;
    if (courier_.has_sent_all(rank())) courier_.sleep(std::min(until, probe));
  }
}

PDP_INLINE void Core::send_probe(const Awaited& awaited, const Probe& probe) {
  constexpr std::uint32_t most_hops = 256;  // a cycle without the initiator would pass its probes on for ever
  if (probe.hops >= most_hops) return;
  Writer writer;
  for (const char letter : std::string_view{probe.path}.substr(0, Writer::largest_copy)) writer.put(letter);
  send(awaited.owner,
       {.kind = Head::Kind::probe, .rank = probe.initiator, .served = probe.hops + 1, .slot = awaited.slot, .weight = probe.wait},
       std::move(writer));
}

PDP_INLINE void Core::chase(SlotId slot, Probe probe) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  if (const auto call = found->second.maker_call.lock()) chase(*call, std::move(probe), 0);  // else the result is complete
}

PDP_INLINE void Core::chase(const Call& call, Probe probe, int depth) {
  constexpr int most = 64;  // calls of this rank that wait for each other's objects
  if (depth == most) return;
  if (call.runs) {
    const auto begin = std::ranges::find(frames_, &call, &Frame::call);
    for (auto frame = begin; frame != frames_.end(); ++frame) {  // a call continues when those above it have ended
      if (probe.initiator == rank() && frame->wait == probe.wait) {
        frame->cycle =
            text("remote calls wait for each other: ", probe.path, "; let one of them return before it has the result of the other");
        return;
      }
      if (!frame->awaited.slot) continue;
      Probe next = probe;
      next.path += text(", which waits for a result of ", who(frame->awaited.owner));
      send_probe(frame->awaited, next);
    }
    return;
  }
  if (call.missing > 0)
    for (const Awaited& need : call.needs) send_probe(need, probe);
  const auto target = slots_.find(call.target);
  if (target == slots_.end()) return;
  const Slot& object = target->second;
  std::shared_ptr<const Call> before = object.running;
  if (!before && !object.calls.empty() && object.calls.front().get() != &call) before = object.calls.front();
  if (!before && object.state == Slot::State::expected) before = object.maker_call.lock();
  if (!before || before.get() == &call) return;
  if (before->method != nullptr) probe.path += text(", which waits for the end of ", before->method->name, " on ", who(rank()));
  chase(*before, std::move(probe), depth + 1);
}

PDP_INLINE void Core::serve() {
  wait([this] { return ended_; }, comm::TimePoint::max(), [] { return std::string{"the end of the job"}; });
  terminate();
}

PDP_INLINE void Core::end() {
  for (int to = 0; to < size(); ++to)
    if (to != rank()) send(to, {.kind = Head::Kind::end});
  terminate();
}

PDP_INLINE bool Core::quiet() const { return calls_ == 0 && ready_.empty() && expected_.empty(); }

/// Ends when no rank has a call and no message is under way: two successive sums over all ranks show the same numbers of sent and of
/// received messages (Mattern 1987).
PDP_INLINE void Core::terminate() {
  const auto what = [] { return std::string{"the end of the calls of all ranks"}; };
  const auto until = [this] { return comm::later(comm::Clock::now(), deadline()); };
  std::array<std::int64_t, 2> before{-1, -1};
  while (true) {
    while (!quiet()) {  // the deadline is for the next message, not for all calls
      const std::int64_t seen = handled_;
      wait([&] { return quiet() || handled_ != seen; }, until(), what);
    }
    std::array<std::int64_t, 2> sums{sent_, handled_};
    auto summed = collectives_.all_reduce_async(sums, comm::Sum{});
    wait([&] { return summed.done(); }, until(), what);
    summed.wait();
    if (sums[0] == sums[1] && sums == before) break;
    before = sums;
  }
  courier_.finish(until());
  raise_pending();
}

PDP_INLINE std::vector<std::string_view> Core::objects() const {
  std::vector<std::string_view> types;
  for (const auto& [id, slot] : slots_)
    if (slot.value.type != nullptr) types.push_back(slot.value.type->name);
  return types;
}

}  // namespace pdp::rpc
