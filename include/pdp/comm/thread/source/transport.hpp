#pragma once

/// Definitions for pdp/comm/thread/transport.hpp; see pdp/core/separate_compilation.hpp.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/message/together/partner.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/os/doorbell.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/comm/thread/transport.hpp>
#include <pdp/comm/thread/world.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace thread {

PDP_INLINE void take(const SendRequest& send, ReceiveRequest& receive) {
  const std::size_t bytes = as_size(send.envelope.bytes);
  if (receive.consume != nullptr)
    receive.consume(receive.data, send.data, bytes);
  else if (bytes > 0)
    std::memcpy(receive.data, send.data, bytes);
  receive.done = true;
}

}  // namespace thread

PDP_INLINE std::vector<ThreadTransport> ThreadTransport::world(int size) {
  if (size < 1) throw ConfigError{text("a world needs at least 1 rank; ", size, " were requested")};
  const auto shared = std::make_shared<World>(size);
  std::vector<ThreadTransport> transports;
  for (int rank = 0; rank < size; ++rank) transports.push_back(ThreadTransport{shared, rank});
  return transports;
}

PDP_INLINE ThreadTransport::ThreadTransport(std::shared_ptr<World> world, int rank)
    : world_{std::move(world)}, rank_{rank}, sent_(world_->mailboxes.size()), meetings_{std::make_unique<thread::Meetings>()} {
  receives_.reserve(thread::in_flight);
  calls_.reserve(thread::in_flight);
  std::vector<together::Partner<Doorbell>> all;
  auto* const boards = reinterpret_cast<together::Board*>(world_->boards.data());
  for (int peer = 0; peer < size(); ++peer) all.push_back({peer, boards + peer, &mailbox(peer).bell});
  meetings_->add(Envelope::world, std::move(all), rank);
}

PDP_INLINE ThreadTransport::ThreadTransport(ThreadTransport&&) noexcept = default;
PDP_INLINE ThreadTransport& ThreadTransport::operator=(ThreadTransport&& other) noexcept {
  const ThreadTransport old{std::move(*this)};
  world_ = std::move(other.world_);
  rank_ = other.rank_;
  sent_ = std::move(other.sent_);
  receives_ = std::move(other.receives_);
  calls_ = std::move(other.calls_);
  meetings_ = std::move(other.meetings_);
  seen_ = other.seen_;
  return *this;
}
PDP_INLINE ThreadTransport::~ThreadTransport() {
  if (!world_) return;
  withdraw();
  mailbox(rank_).gone.store(true, std::memory_order_release);
  world_->left.fetch_add(1, std::memory_order_release);
  for (Mailbox& each : world_->mailboxes) each.bell.ring();
}

PDP_INLINE int ThreadTransport::size() const { return as_int(world_->mailboxes.size()); }
PDP_INLINE thread::Mailbox& ThreadTransport::mailbox(int rank) const { return world_->mailboxes[as_size(rank)]; }
PDP_INLINE const Failure* ThreadTransport::failure() const {
  return world_->failed.load(std::memory_order_acquire) ? &world_->failure : nullptr;
}

PDP_INLINE void ThreadTransport::post(SendRequest& send) {
  send.done.store(false, std::memory_order_relaxed);
  send.next = nullptr;
  Mailbox& to = mailbox(send.peer);
  {
    const std::lock_guard lock{to.mutex};
    to.sends.emplace_back(rank_, &send);
  }
  ++sent_[as_size(send.peer)];
  to.bell.ring();
}

PDP_INLINE void ThreadTransport::post(ReceiveRequest& receive) {
  receive.done = false;
  receives_.push_back(&receive);
}

PDP_INLINE void ThreadTransport::post(GroupRequest& request) {
  request.done = false;
  request.missing = rank_;
  if (failure() != nullptr) return;
  meetings_->begin(request);
  meet();
}

PDP_INLINE thread::Memory ThreadTransport::share(std::size_t bytes) { return Shared::create(bytes); }
PDP_INLINE thread::Memory ThreadTransport::open(const SharedAddress& address, std::size_t) { return Shared::open(address); }
PDP_INLINE void ThreadTransport::add_group(const GroupPlace& place, std::vector<Shared> boards) {
  std::vector<together::Partner<Doorbell>> members;
  for (std::size_t member = 0; member < boards.size(); ++member)
    members.push_back({place.ranks[member], reinterpret_cast<together::Board*>(boards[member].data()), &mailbox(place.ranks[member]).bell});
  meetings_->add(place.channel, std::move(members), place.rank, std::move(boards));
}
PDP_INLINE void ThreadTransport::remove_group(std::uint64_t channel) { meetings_->remove(channel); }
PDP_INLINE Region ThreadTransport::add_arena(const GroupPlace& place, std::uint64_t, std::vector<Shared> memories) {
  std::vector<std::byte*> parts;
  for (const Shared& each : memories) parts.push_back(each.data());
  const Shared own = memories[as_size(place.rank)];
  return {own.data(), own.size(), std::make_shared<std::vector<Shared>>(std::move(memories)), std::move(parts)};
}

PDP_INLINE bool ThreadTransport::progress() {
  if (world_->failed.load(std::memory_order_acquire)) {
    withdraw();
    world_->failure.raise();
  }
  seen_ = mailbox(rank_).bell.rings();
  bool moved = meet();
  moved = (!receives_.empty() && receive()) || moved;
  if (!moved && world_->left.load(std::memory_order_acquire) > 0) check_peers();
  return moved;
}

PDP_INLINE void ThreadTransport::wait(TimePoint until) {
  Doorbell& bell = mailbox(rank_).bell;
  for (auto* meeting : meetings_->active())
    if (const int missing = meeting->missing(); missing >= 0) meeting->request()->missing = missing;
  bell.wait(seen_, std::min(until, Clock::now() + patience));
  if (bell.rings() == seen_) compare_calls();
}

PDP_INLINE void ThreadTransport::fail(Failure failure) {
  {
    const std::lock_guard lock{world_->failing};
    if (!world_->failed.load(std::memory_order_relaxed)) {
      world_->failure = std::move(failure);
      world_->failed.store(true, std::memory_order_seq_cst);
    }
  }
  withdraw();
  for (Mailbox& each : world_->mailboxes) each.bell.ring();
}

PDP_INLINE bool ThreadTransport::meet() {
  if (meetings_->active().empty()) return false;
  Mailbox& own = mailbox(rank_);
  bool moved = false, ended = false;
  Failure wrong;
  own.meets.store(true, std::memory_order_seq_cst);
  if (!world_->failed.load(std::memory_order_seq_cst)) {
    for (auto* meeting : meetings_->active()) {
      const GroupRequest* const request = meeting->request();
      moved = meeting->advance() || moved;
      if (meeting->fault()) wrong = find_earlier(request->envelope).value_or(std::move(*meeting->fault()));
      ended = ended || request->done;
    }
  }
  own.meets.store(false, std::memory_order_release);
  if (!wrong.message.empty()) end(std::move(wrong));
  if (ended) meetings_->remove_ended();
  return moved;
}
PDP_INLINE bool ThreadTransport::receive() {
  Mailbox& own = mailbox(rank_);
  bool moved = false;
  Failure wrong;
  {
    const std::lock_guard lock{own.mutex};
    std::erase_if(receives_, [&](ReceiveRequest* receive) {
      const auto found = thread::find_message(own, *receive);
      if (found == own.sends.end()) return false;
      SendRequest& send = *found->second;
      if (send.envelope != receive->envelope) {
        if (wrong.message.empty()) wrong = mismatch(receive->envelope, rank_, send.envelope, receive->peer);
        return false;
      }
      thread::take(send, *receive);
      own.sends.erase(found);
      ++own.taken[as_size(receive->peer)];
      send.done.store(true, std::memory_order_release);
      mailbox(receive->peer).bell.ring();
      return moved = true;
    });
  }
  if (!wrong.message.empty()) end(std::move(wrong));
  return moved;
}

PDP_INLINE void ThreadTransport::end(Failure failure) {
  fail(std::move(failure));
  world_->failure.raise();
}

PDP_INLINE void ThreadTransport::withdraw() {
  receives_.clear();
  meetings_->drop();
  for (Mailbox& each : world_->mailboxes)
    while (failure() != nullptr && &each != &mailbox(rank_) && each.meets.load(std::memory_order_seq_cst)) sched_yield();
  for (Mailbox& each : world_->mailboxes) {
    const std::lock_guard lock{each.mutex};
    std::erase_if(each.sends, [this](const auto& sent) { return sent.first == rank_; });
  }
}

}  // namespace pdp::comm
