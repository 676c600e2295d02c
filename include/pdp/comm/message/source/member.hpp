#pragma once

/// Definitions of the members declared in pdp/comm/message/member.hpp; see pdp/core/separate_compilation.hpp. The file holds only
/// templates. Any source that instantiates a Member with its own transport can include it, as the sources of the backends do.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/algorithm/select.hpp>
#include <pdp/comm/message/algorithm/table.hpp>
#include <pdp/comm/message/algorithm/two_level.hpp>
#include <pdp/comm/message/call.hpp>
#include <pdp/comm/message/call_group.hpp>
#include <pdp/comm/message/call_queue.hpp>
#include <pdp/comm/message/member.hpp>
#include <pdp/comm/message/schedule.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

template <Transport T>
Member<T>::Member(T transport, Duration deadline)
    : queue_{std::make_shared<Queue>(std::move(transport), deadline)},
      group_{std::make_unique<Group>()},
      rank_{queue_->transport().rank()} {
  group_->ranks.resize(as_size(queue_->transport().size()));
  std::ranges::generate(group_->ranks, [rank = 0]() mutable { return rank++; });
  group_->channel = Envelope::world;
  queue_->attach(*group_);
  if constexpr (GroupTransport<T>) {
    meets_ = size() > 1 && queue_->transport().near(group_->ranks);
    if (!meets_) prepare_to_meet();
  }
}
template <Transport T>
Member<T>::Member(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank)
    : queue_{std::move(queue)}, group_{std::move(group)}, rank_{rank} {
  queue_->attach(*group_);
}
template <Transport T>
Member<T>::Member(Member&&) noexcept = default;
template <Transport T>
Member<T>& Member<T>::operator=(Member&& other) noexcept {
  const Member old{std::move(*this)};
  queue_ = std::move(other.queue_);
  group_ = std::move(other.group_);
  rank_ = other.rank_;
  meets_ = other.meets_;
  levels_ = std::move(other.levels_);
  host_part_ = std::move(other.host_part_);
  always_ = other.always_;
  return *this;
}
template <Transport T>
Member<T>::~Member() {
  if (!group_) return;
  queue_->detach(*group_);
  if constexpr (GroupTransport<T>)
    if (meets_ && group_->channel != Envelope::world) queue_->transport().remove_group(group_->channel);
}

template <Transport T>
Duration Member<T>::deadline() const {
  return queue_->deadline();
}
template <Transport T>
void Member<T>::deadline(Duration duration) {
  queue_->deadline(duration);
}
template <Transport T>
void Member<T>::heartbeat(Duration duration) requires KeepsHeartbeat<T> {
  queue_->transport().heartbeat(duration);
}

template <Transport T>
bool Member<T>::is_done(Group& group, Call& call) {
  return group.queue->done(group, call);
}
template <Transport T>
void Member<T>::finish(Group& group, Call& call) {
  group.queue->finish(group, call);
}
template <Transport T>
void Member<T>::drop(Group& group, Call& call) noexcept {
  group.queue->abandon(group, call);
}

template <Transport T>
void Member<T>::progress() {
  queue_->progress();
}
template <Transport T>
void Member<T>::wait_for_progress(TimePoint until) {
  queue_->wait_for_progress(until);
}
template <Transport T>
void Member<T>::abort(const std::string& reason) {
  if (queue_) queue_->fail({Failure::Kind::lost, queue_->transport().rank(), reason});  // a moved-from Member has no world to end
}

template <Transport T>
template <class E>
void Member<T>::gather_from_all(const E& mine, std::vector<E>& all) {
  static_assert(std::is_trivially_copyable_v<E>);
  all.resize(group_->ranks.size());
  exchange_records(*this, std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
}

template <Transport T>
Member<T> Member<T>::split(int color, int key) {
  std::vector<ColorAndKey> all;
  gather_from_all({color, key}, all);
  const std::vector<int> members = members_of_color(all, color);
  auto group = std::make_unique<Group>();
  for (const int rank : members) group->ranks.push_back(group_->ranks[as_size(rank)]);
  group->channel = channel_of(group_->channel, group_->calls, color);
  Member made{queue_, std::move(group), place_among(members, rank_)};
  if constexpr (GroupTransport<T>) made.prepare_to_meet();
  return made;
}

template <Transport T>
typename Member<T>::Work Member<T>::start(const Request& request) {
  const CheckedRequest checked = CallChecks{rank_, size()}.check(request, group_->begins);
  return {*group_, request.verb == Verb::send ? begin_message(request, checked) : begin(request, checked)};
}

template <Transport T>
Call& Member<T>::begin(const Request& request, const CheckedRequest& checked) {
  Call& call = queue_->fresh();
  call.envelope = checked.envelope;
  call.envelope.channel = group_->channel;
  call.element = request.in.element;
  select(call, {.count = request.in.count, .shards = checked.shards, .received = checked.received}, request.out.count);
  call.buffers = {request.in.data, request.out.data, nullptr};
  call.combine = request.reducer.combine;
  call.divide = request.verb == Verb::reduce && rank_ != request.root ? nullptr : request.reducer.divide;
  call.divisible = request.out.data;
  call.divisible_bytes = request.out.bytes();
  queue_->start(*group_, call);
  return call;
}

template <Transport T>
Call& Member<T>::begin_message(const Request& request, const CheckedRequest& checked) {
  Call& call = queue_->fresh_message();
  call.envelope = checked.envelope;
  call.element = (request.to != no_peer ? request.in : request.out).element;
  call.schedule.clear();
  if (request.to != no_peer) call.schedule.send(request.to, Step::Buffer::input, 0, request.in.count);
  if (request.from != no_peer) call.schedule.receive(request.from, Step::Buffer::output, 0, request.out.count);
  call.buffers = {request.in.data, request.out.data, nullptr};
  call.combine = nullptr;
  call.divide = nullptr;
  queue_->start_message(*group_, call);
  return call;
}

/// Writes the schedule of a call. `count`: elements of the output.
template <Transport T>
void Member<T>::select(Call& call, const algorithm::Extent& extent, std::size_t count) {
  const Envelope& envelope = call.envelope;
  if (meets_ && met_for(envelope.verb)) {
    call.meeting = group_->channel;
    call.schedule.clear();
    call.schedule.copy(Step::Buffer::output, 0, Step::Buffer::input, 0, count);
    call.schedule.together(Step::Buffer::output, count);
  } else if (host_part_ && algorithm::TwoLevel::takes(envelope.verb)) {
    call.meeting = host_part_->group_->channel;
    algorithm::TwoLevel{call.schedule, *levels_, rank_}.select(envelope.verb, envelope.root, extent.count, call.element);
  } else {
    if (always_ && envelope.verb == Verb::all_reduce) {
      call.schedule.clear();
      return algorithm::all_reduce(call.schedule, *always_, rank_, size(), extent.count);
    }
    algorithm::select(call.schedule, envelope.verb, rank_, size(), envelope.root, extent, call.element,
                      rank_ordered ? algorithm::Order::of_ranks : algorithm::Order::any);
  }
}

/// Returns the channel of a new group: a mix of the parent's channel, the number of its last call and the color. It is equal on all members
/// and, with overwhelming probability, different from all other channels.
template <Transport T>
std::uint64_t Member<T>::channel_of(std::uint64_t parent, std::uint64_t call, int color) {
  std::uint64_t mixed = parent;
  for (const std::uint64_t part : {call, static_cast<std::uint64_t>(color)}) {
    mixed += part + 0x9e3779b97f4a7c15ULL;  // splitmix64
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31;
  }
  return mixed;
}

// Memory shared by ranks of a group.

template <Transport T>
void Member<T>::prepare_to_meet() requires GroupTransport<T> {
  T& transport = queue_->transport();
  if (size() < 2) return;
  if (transport.near(group_->ranks)) {
    transport.add_group(place(), share(T::board_bytes, [](auto&) {}));
    meets_ = true;
  } else if constexpr (HostTransport<T>) {
    std::vector<int> hosts, host_of;  // numbered in the order of their first ranks in the group
    for (const int rank : group_->ranks) {
      const auto found = std::ranges::find(hosts, transport.host_of(rank));
      host_of.push_back(as_int(found - hosts.begin()));
      if (found == hosts.end()) hosts.push_back(transport.host_of(rank));
    }
    if (hosts.size() == host_of.size()) return;  // no two ranks share a host
    const int host = host_of[as_size(rank_)];
    host_part_ = std::make_unique<Member>(split(host, rank_));
    levels_ = std::make_unique<algorithm::Levels>(algorithm::Levels::of(std::move(host_of), rank_));
  }
}

template <Transport T>
template <class Prepare>
auto Member<T>::share(std::size_t bytes, const Prepare& prepare) requires GroupTransport<T> {
  using Shared = typename T::Shared;
  Shared own = T::share(bytes);
  prepare(own);
  std::vector<SharedAddress> addresses;
  gather_from_all(own.address(), addresses);
  std::vector<Shared> all;
  for (int rank = 0; rank < size(); ++rank) {
    // NOLINTNEXTLINE(bugprone-use-after-move): moved only once, for this rank's own index
    all.push_back(rank == rank_ ? std::move(own) : open_of(addresses[as_size(rank)], bytes));
    if (rank != rank_) prepare(all.back());
  }
  start({.verb = Verb::barrier}).wait();  // afterwards no rank opens this rank's memory
  all[as_size(rank_)].close();
  return all;
}

template <Transport T>
auto Member<T>::open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T> {
  try {
    return T::open(address, bytes);
  } catch (const ConfigError&) {
    // The memory of a process that has ended cannot be opened. Wait briefly, so that the transport can report that the rank is lost.
    for (const TimePoint until = Clock::now() + std::chrono::milliseconds{200}; Clock::now() < until;) queue_->transport().wait(until);
    throw;
  }
}

template <Transport T>
Region Member<T>::allocate(std::size_t bytes) requires ArenaTransport<T> {
  if (host_part_) {
    const auto region = std::make_shared<Region>(host_part_->allocate(bytes));
    return {region->data(), region->size(), region};  // without parts, because ranks on other hosts cannot access it
  }
  if (!meets_) return Region::ordinary(bytes);
  // Compare sizes before any memory is made. If only one rank threw later, the others would try to open memory that is gone.
  std::vector<std::size_t> asked;
  gather_from_all(bytes, asked);
  if (const auto other = std::ranges::find_if(asked, [&](std::size_t each) { return each != asked[0]; }); other != asked.end())
    throw ConfigError{text("rank 0 of a group of ", size(), " ranks requested ", asked[0], " bytes of shared memory, but rank ",
                           other - asked.begin(), " requested ", *other, "; all ranks must request the same size")};
  if (bytes == 0) return Region::ordinary(bytes);
  const std::uint64_t number = channel_of(group_->channel, group_->calls, /*color*/ -1);
  return queue_->transport().add_arena(place(), number, share(bytes, [](auto& memory) { memory.populate(); }));
}

}  // namespace pdp::comm
