#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/backend/work_handle.hpp>
#include <pdp/comm/message/algorithm/select.hpp>
#include <pdp/comm/message/algorithm/two_level.hpp>
#include <pdp/comm/message/call_queue.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// One rank of a group, and its calls with the types of their elements erased: all of a communicator that depends on the transport only.
/// Sub-groups share the transport and live on their own.
template <Transport T>
class Member {
  using Queue = CallQueue<T>;
  using Group = typename Queue::Group;

 public:
  static constexpr bool fails_fast = true;
  /// Ranks that share memory add in their order.
  static constexpr bool rank_ordered = GroupTransport<T> && !HostTransport<T>;

  using Work = WorkHandle<Group, Call>;

  /// The world: all ranks of the transport. `deadline`: how long a call may wait.
  explicit Member(T transport, Duration deadline = default_deadline);
  Member(Member&&) noexcept;
  Member& operator=(Member&&) noexcept;
  ~Member();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return as_int(group_->ranks.size()); }
  [[nodiscard]] Duration deadline() const { return queue_->deadline(); }
  void deadline(Duration duration) { queue_->deadline(duration); }
  /// For calibration: this group's all-reduces by messages are carried out so, whatever the table says. The same on all ranks.
  void always(algorithm::AllReduce algorithm) { always_ = algorithm; }
  void heartbeat(Duration duration) requires KeepsHeartbeat<T> { queue_->transport().heartbeat(duration); }
  void progress();
  void abort(const std::string& reason);

  Work start(const Request& request);

  /// The group of those ranks that give the same colour, ordered by key and then by rank.
  [[nodiscard]] Member split(int color, int key);

  /// Whether all ranks of the group see the memory that allocate() makes.
  [[nodiscard]] bool shares_memory() const { return ArenaTransport<T> && meets_; }
  /// Memory that all ranks of the group see, so that collectives work where the values lie.
  Region allocate(std::size_t bytes) requires ArenaTransport<T>;

 private:
  Member(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank);

  /// Memory of every rank of the group, each of as many bytes.
  /// `prepare`: what is to be done with each as soon as it is there.
  template <class Prepare>
  auto share(std::size_t bytes, const Prepare& prepare) requires GroupTransport<T>;
  /// What another rank of the group shares. Throws PeerLost where that rank has ended.
  auto open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T>;
  template <class E>
  void gather_from_all(const E& mine, std::vector<E>& all);
  [[nodiscard]] GroupPlace place() const { return {group_->channel, group_->ranks, rank_}; }
  /// Prepares what the ranks of a new group need to meet.
  void prepare_to_meet() requires GroupTransport<T>;
  void select(Call& call, const algorithm::Extent& extent, std::size_t count);

  Call& begin(const Request& request, const CheckedRequest& checked);
  Call& begin_message(const Request& request, const CheckedRequest& checked);
  static std::uint64_t channel_of(std::uint64_t parent, std::uint64_t call, int color);

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Group> group_;
  int rank_ = 0;
  std::optional<algorithm::AllReduce> always_;
  bool meets_ = false;                 // all ranks of the group can meet
  algorithm::Levels levels_;           // of a group over several hosts, some of which have several of its ranks; else empty
  std::unique_ptr<Member> host_part_;  // its ranks of this host
};

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
  Member old{std::move(*this)};
  queue_ = std::move(other.queue_);
  group_ = std::move(other.group_);
  rank_ = other.rank_;
  meets_ = other.meets_;
  levels_ = std::move(other.levels_);
  host_part_ = std::move(other.host_part_);
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
void Member<T>::progress() {
  queue_->progress();
}
template <Transport T>
void Member<T>::abort(const std::string& reason) {
  if (queue_) queue_->fail({Failure::Kind::lost, queue_->transport().rank(), reason});  // one that was moved from has no world to end
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

/// `count`: of the output.
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
    algorithm::TwoLevel{call.schedule, levels_, rank_}.select(envelope.verb, envelope.root, extent.count, call.element);
  } else {
    if (always_ && envelope.verb == Verb::all_reduce) {
      call.schedule.clear();
      return algorithm::all_reduce(call.schedule, *always_, rank_, size(), extent.count);
    }
    algorithm::select(call.schedule, envelope.verb, rank_, size(), envelope.root, extent, call.element,
                      rank_ordered ? algorithm::Order::of_ranks : algorithm::Order::any);
  }
}

/// The same on all members, and with overwhelming probability on no other group: a mix of where the split was made and of its colour.
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

}  // namespace pdp::comm

#include <pdp/comm/message/member_memory.hpp>
