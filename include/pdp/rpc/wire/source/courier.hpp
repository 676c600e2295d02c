#pragma once

/// Definitions for pdp/rpc/wire/courier.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/wire/courier.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

namespace detail {

/// Calls f(part) for each message of an array.
template <class Byte, class F>
void for_each_piece(std::span<Byte> array, const F& f) {
  for (std::size_t at = 0; at < array.size(); at += Courier::piece) f(array.subspan(at, std::min(Courier::piece, array.size() - at)));
}

}  // namespace detail

PDP_INLINE Courier::Courier(comm::Any group, Open open)
    : group_{std::move(group)},
      open_{std::move(open)},
      completed_(as_size(group_.size())),
      outgoing_(as_size(group_.size())),
      incoming_(as_size(group_.size())) {
  for (int from = 0; from < size(); ++from) {
    incoming_[as_size(from)].works.resize(1);
    if (from != rank()) receive_head(from);
  }
  incoming_[as_size(rank())].part = Incoming::Part::ended;
}

PDP_INLINE Courier::~Courier() = default;

PDP_INLINE std::uint64_t Courier::send(int to, Head head, Writer values, std::function<void()> sent) {
  if (values.bytes().size() + values.arrays().size() * sizeof(std::uint64_t) > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error{"the small values of a remote call take more than 4 GiB; send them as arrays of numbers"};
  auto& message = outgoing_[as_size(to)].emplace_back(Outgoing{{}, std::move(values), {}, {}, std::move(sent)});
  const auto arrays = message.values.arrays();
  const auto encoded = message.values.bytes();
  head.arrays = static_cast<std::uint32_t>(arrays.size());
  head.bytes = static_cast<std::uint32_t>(arrays.size() * sizeof(std::uint64_t) + encoded.size());
  message.encoded.reserve(head.bytes);
  for (const auto& array : arrays) {
    const std::uint64_t size = array.size();
    const auto bytes = std::as_bytes(std::span{&size, 1});
    message.encoded.insert(message.encoded.end(), bytes.begin(), bytes.end());
  }
  message.encoded.insert(message.encoded.end(), encoded.begin(), encoded.end());
  message.message.head = head;
  const std::uint64_t number = completed_[as_size(to)] + outgoing_[as_size(to)].size();
  if (to == rank()) return number;  // poll() delivers it
  const auto inside = std::min(message.encoded.size(), HeadMessage::room);
  if (inside > 0) std::memcpy(message.message.values.data(), message.encoded.data(), inside);
  const auto post = [&](std::span<const std::byte> bytes) { message.works.push_back(group_.send_async(bytes, to)); };
  post(std::as_bytes(std::span{&message.message, 1}));
  if (message.encoded.size() > inside) post(std::span{message.encoded}.subspan(inside));
  for (const auto& array : arrays) detail::for_each_piece(array, post);
  return number;
}

PDP_INLINE bool Courier::poll() {
  if (failure_) std::rethrow_exception(failure_);
  try {
    return move_messages();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

PDP_INLINE bool Courier::move_messages() {
  constexpr int most = 64;  // messages of one rank: the calls that have arrived run in between
  bool arrived = false;
  for (int from = 0; from < size(); ++from)
    for (int i = 0; i < most && advance(from); ++i) arrived = true;
  for (int to = 0; to < size(); ++to) {
    auto& queue = outgoing_[as_size(to)];
    while (!queue.empty() && std::ranges::all_of(queue.front().works, [](Work& work) { return work.done(); })) {
      const Outgoing message = std::move(queue.front());
      queue.pop_front();
      ++completed_[as_size(to)];
      if (to != rank()) {
        if (message.sent) message.sent();
        continue;
      }
      const Arrival arrival = read(to, message.message.head, message.encoded);
      std::size_t i = 0;
      for (const auto& array : message.values.arrays())
        if (const auto into = arrival.arrays[i++]; !into.empty()) std::memcpy(into.data(), array.data(), array.size());
      if (message.sent) message.sent();
      arrival.complete();
      arrived = true;
    }
  }
  return arrived;
}

PDP_INLINE void Courier::finish(comm::TimePoint until) {
  for (int to = 0; to < size(); ++to)
    if (to != rank()) send(to, {.kind = Head::Kind::bye});
  while (!idle()) {
    poll();
    if (idle()) return;
    if (comm::Clock::now() >= until)
      throw Timeout{text("rank ", rank(), ": another rank has not ended its remote calls before the deadline (PDP_DEADLINE)")};
    sleep(until);
  }
}

PDP_INLINE bool Courier::borrows(int to, std::uint64_t number) const {
  const std::uint64_t completed = completed_[as_size(to)];
  return completed < number && !outgoing_[as_size(to)][number - completed - 1].values.arrays().empty();
}

PDP_INLINE bool Courier::idle() const {
  return std::ranges::all_of(outgoing_, [](const auto& queue) { return queue.empty(); }) &&
         std::ranges::all_of(incoming_, [](const Incoming& incoming) { return incoming.part == Incoming::Part::ended; });
}

PDP_INLINE void Courier::receive_head(int from) {
  Incoming& incoming = incoming_[as_size(from)];
  incoming.part = Incoming::Part::head;
  incoming.works.clear();
  incoming.works.push_back(group_.recv_async(std::as_writable_bytes(std::span{&incoming.message, 1}), from));
}

PDP_INLINE bool Courier::advance(int from) {
  Incoming& incoming = incoming_[as_size(from)];
  if (incoming.part == Incoming::Part::ended) return false;
  for (Work& work : incoming.works) {
    if (!work.pending()) continue;
    if (!work.done()) return false;
    work.wait();
  }
  const Head& head = incoming.message.head;
  if (incoming.part == Incoming::Part::head) {
    incoming.values.resize(head.bytes);
    const std::size_t inside = std::min<std::size_t>(head.bytes, HeadMessage::room);
    if (inside > 0) std::memcpy(incoming.values.data(), incoming.message.values.data(), inside);
    incoming.part = Incoming::Part::values;
    incoming.works.clear();
    if (head.bytes > inside) {
      incoming.works.push_back(group_.recv_async(std::span{incoming.values}.subspan(inside), from));
      return true;
    }
  }
  if (incoming.part == Incoming::Part::values) {
    if (head.kind == Head::Kind::bye) {
      incoming.part = Incoming::Part::ended;
      return true;
    }
    open(from);
    if (!incoming.works.empty()) return true;
  }
  const auto complete = std::exchange(incoming.arrival, {}).complete;
  receive_head(from);
  complete();
  return true;
}

PDP_INLINE void Courier::open(int from) {
  Incoming& incoming = incoming_[as_size(from)];
  incoming.arrival = read(from, incoming.message.head, incoming.values);
  incoming.part = Incoming::Part::arrays;
  incoming.works.clear();
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const auto receive = [&](std::span<std::byte> part) { incoming.works.push_back(group_.recv_async(part, from)); };
    if (const auto into = incoming.arrival.arrays[i]; !into.empty()) {
      detail::for_each_piece(into, receive);
      continue;
    }
    auto left = std::size_t{sizes_[i]};  // there is no memory for it: all pieces go to one place
    discarded_.resize(std::max(discarded_.size(), std::min(piece, left)));
    for (; left > 0; left -= std::min(piece, left)) {
      receive(std::span{discarded_}.first(std::min(piece, left)));
      incoming.works.back().wait();
    }
  }
}

PDP_INLINE Arrival Courier::read(int from, const Head& head, std::span<const std::byte> values) {
  Reader prefix{values};
  sizes_.clear();
  for (std::uint32_t i = 0; i < head.arrays; ++i) sizes_.push_back(prefix.get<std::uint64_t>());
  Arrival arrival = open_({from, head, values.last(prefix.left()), sizes_});
  if (arrival.arrays.size() != sizes_.size()) Reader::fail("it has another number of arrays");
  return arrival;
}

}  // namespace pdp::rpc
