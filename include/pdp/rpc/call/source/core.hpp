#pragma once

/// Definitions for pdp/rpc/call/core.hpp: the calls that a rank makes. See pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
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
      releases_(as_size(group.size())),
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

PDP_INLINE std::uint64_t Core::send(int to, const Head& head, Writer values, std::function<void()> sent) {
  send_releases(to);
  ++sent_;
  return courier_.send(to, head, std::move(values), std::move(sent));
}

PDP_INLINE std::uint64_t Core::call(int to, Head head, Writer arguments) {
  head.kind = Head::Kind::call;
  MethodStatistics& statistics = statistics_[Method::find(head.method).name];
  ++statistics.calls;
  statistics.bytes += static_cast<std::int64_t>(arguments.total());
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
PDP_INLINE void Core::release(int owner, SlotId slot, std::uint64_t weight, bool is_reference, bool is_silent) {
  releases_[as_size(owner)].push_back({slot, weight, is_reference, is_silent});
}
PDP_INLINE void Core::send_releases(int owner) {
  auto& releases = releases_[as_size(owner)];
  if (releases.empty()) return;
  Writer writer;
  for (const Release& each : releases) {
    writer.put(each.slot.number);
    writer.put(each.slot.maker);
    writer.put(each.weight);
    writer.put(each.is_reference);
    writer.put(each.is_silent);
  }
  releases.clear();
  ++sent_;
  courier_.send(owner, {.kind = Head::Kind::release}, std::move(writer));
}
PDP_INLINE void Core::send_releases() {
  for (int owner = 0; owner < size(); ++owner) send_releases(owner);
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

}  // namespace pdp::rpc
