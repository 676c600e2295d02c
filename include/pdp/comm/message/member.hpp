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

  /// A call in flight. Letting go of it before it is complete ends the world, as its memory would be written after its time.
  class [[nodiscard]] Work {
   public:
    Work() = default;
    Work(Work&& other) noexcept : queue_{other.queue_}, group_{other.group_}, call_{std::exchange(other.call_, nullptr)} {}
    Work& operator=(Work&& other) noexcept {
      if (this != &other) {
        abandon();
        queue_ = other.queue_;
        group_ = other.group_;
        call_ = std::exchange(other.call_, nullptr);
      }
      return *this;
    }
    ~Work() { abandon(); }

    [[nodiscard]] bool pending() const { return call_ != nullptr; }
    [[nodiscard]] bool done();
    void wait();

   private:
    friend class Member;
    Work(Queue& queue, Group& group, Call& call) : queue_{&queue}, group_{&group}, call_{&call} {}
    void abandon() noexcept;

    Queue* queue_ = nullptr;
    Group* group_ = nullptr;
    Call* call_ = nullptr;
  };

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

  /// A call in which every rank brings as much. `root`: -1 where there is none.
  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {});
  /// A call with a shard for each rank. No counts: all are of one size.
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {});
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received);
  /// A message to one rank, from another one, or both; a peer of `nobody` leaves one out.
  Work exchange(Memory out, int to, Memory in, int from, int tag);

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

  Work begin(Verb verb, Memory in, Memory out, const algorithm::Extent& extent, std::size_t count, int root, Reducer reducer);
  [[nodiscard]] CallChecks checks() const { return {rank_, size()}; }
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
void Member<T>::Work::wait() {
  if (pending()) queue_->finish(*group_, *call_);
  call_ = nullptr;
}
template <Transport T>
bool Member<T>::Work::done() {
  return !pending() || queue_->done(*group_, *call_);
}
template <Transport T>
void Member<T>::Work::abandon() noexcept {
  if (pending()) queue_->abandon(*group_, *std::exchange(call_, nullptr));
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
  const auto bytes = [](const auto* values, std::size_t count) {
    return Memory{const_cast<std::byte*>(reinterpret_cast<const std::byte*>(values)), count * sizeof(E), 1, DType::byte};
  };
  collective(Verb::all_gather, bytes(all.data(), all.size()), bytes(&mine, 1), Counts{}, no_root).wait();
}

template <Transport T>
Member<T> Member<T>::split(int color, int key) {
  std::vector<std::array<std::int32_t, 2>> all;  // colour and key
  gather_from_all({color, key}, all);
  std::vector<std::pair<int, int>> members;  // key, rank in this group
  for (int rank = 0; rank < size(); ++rank)
    if (const auto& [its_color, its_key] = all[as_size(rank)]; its_color == color) members.emplace_back(its_key, rank);
  std::ranges::sort(members);
  auto group = std::make_unique<Group>();
  int rank_in_group = 0;
  for (const auto& [member_key, rank] : members) {
    if (rank == rank_) rank_in_group = as_int(group->ranks.size());
    group->ranks.push_back(group_->ranks[as_size(rank)]);
  }
  group->channel = channel_of(group_->channel, group_->calls, color);
  Member made{queue_, std::move(group), rank_in_group};
  if constexpr (GroupTransport<T>) made.prepare_to_meet();
  return made;
}

template <Transport T>
void Member<T>::prepare_to_meet() requires GroupTransport<T> {
  T& transport = queue_->transport();
  if (size() < 2) return;
  if (transport.near(group_->ranks)) {
    transport.add_group(place(), share(T::board_bytes, [](auto&) {}));
    meets_ = true;
  } else if constexpr (HostTransport<T>) {
    std::vector<int> hosts, host_of;  // as the group's ranks meet them
    for (const int rank : group_->ranks) {
      const auto found = std::ranges::find(hosts, transport.host_of(rank));
      host_of.push_back(as_int(found - hosts.begin()));
      if (found == hosts.end()) hosts.push_back(transport.host_of(rank));
    }
    if (hosts.size() == host_of.size()) return;  // nobody is near anybody
    const int host = host_of[as_size(rank_)];
    host_part_ = std::make_unique<Member>(split(host, rank_));
    levels_ = algorithm::Levels::of(std::move(host_of), rank_);
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
    all.push_back(rank == rank_ ? std::move(own) : open_of(addresses[as_size(rank)], bytes));
    if (rank != rank_) prepare(all.back());
  }
  collective(Verb::barrier, {}, {}, no_root).wait();  // after which nobody opens this rank's any more
  all[as_size(rank_)].close();
  return all;
}

template <Transport T>
auto Member<T>::open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T> {
  try {
    return T::open(address, bytes);
  } catch (const ConfigError&) {
    // A process that has ended shares nothing any more; a little later this rank knows that it has.
    for (const TimePoint until = Clock::now() + std::chrono::milliseconds{200}; Clock::now() < until;) queue_->transport().wait(until);
    throw;
  }
}

template <Transport T>
Region Member<T>::allocate(std::size_t bytes) requires ArenaTransport<T> {
  if (host_part_) {
    const auto region = std::make_shared<Region>(host_part_->allocate(bytes));
    return {region->data(), region->size(), region};  // some of the group do not see it
  }
  if (!meets_) return Region::ordinary(bytes);
  // Before any memory is made: a rank that threw by itself would leave the others to open what is gone.
  std::vector<std::size_t> asked;
  gather_from_all(bytes, asked);
  if (const auto other = std::ranges::find_if(asked, [&](std::size_t each) { return each != asked[0]; }); other != asked.end())
    throw ConfigError{text("rank 0 of a group of ", size(), " asked for ", asked[0], " bytes of memory in common, and rank ",
                           other - asked.begin(), " for ", *other, "; all ranks of a group must ask for as much")};
  if (bytes == 0) return Region::ordinary(bytes);
  const std::uint64_t number = channel_of(group_->channel, group_->calls, /*color*/ -1);
  return queue_->transport().add_arena(place(), number, share(bytes, [](auto& memory) { memory.populate(); }));
}

template <Transport T>
typename Member<T>::Work Member<T>::collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  if (verb == Verb::broadcast || verb == Verb::reduce) checks().root(verb, root);
  return begin(verb, in, out, {.count = in.count}, in.count, root, reducer);
}

template <Transport T>
typename Member<T>::Work Member<T>::collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  const Shards cut = checks().shards(verb, whole, shard, counts, root, group_->begins[0]);
  const bool spreads = verb == Verb::scatter || verb == Verb::reduce_scatter;
  return begin(verb, spreads ? whole : shard, spreads ? shard : whole, {.shards = cut}, counts.empty() ? shard.count : cut.begin(size()),
               root, reducer);
}

template <Transport T>
typename Member<T>::Work Member<T>::all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  const bool equal = sent.empty() && received.empty();
  const auto [sending, receiving] = checks().all_to_all(in, sent, out, received, group_->begins);
  // Ranks may differ in what they send where they say so for each; then only the messages show whether two agree.
  return begin(Verb::all_to_all, in, out, {.shards = sending, .received = receiving}, equal ? in.count / as_size(size()) : 0, -1, {});
}

template <Transport T>
typename Member<T>::Work Member<T>::begin(Verb verb, Memory in, Memory out, const algorithm::Extent& extent, std::size_t count, int root,
                                          Reducer reducer) {
  checks().one_type(verb, in, out);
  Call& call = queue_->fresh();
  call.envelope = {.channel = group_->channel, .count = count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction};
  call.element = in.element;
  select(call, extent, out.count);
  call.buffers = {in.data, out.data, nullptr};
  call.combine = reducer.combine;
  call.divide = verb == Verb::reduce && rank_ != root ? nullptr : reducer.divide;
  call.divisible = out.data;
  call.divisible_bytes = out.count * out.element;
  queue_->start(*group_, call);
  return Work{*queue_, *group_, call};
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

template <Transport T>
typename Member<T>::Work Member<T>::exchange(Memory out, int to, Memory in, int from, int tag) {
  checks().message(out, to, in, from, tag);
  Call& call = queue_->fresh_message();
  call.schedule.clear();
  if (to != nobody) call.schedule.send(to, Step::Buffer::input, 0, out.count);
  if (from != nobody) call.schedule.receive(from, Step::Buffer::output, 0, in.count);
  const Memory& either = to != nobody ? out : in;
  call.envelope = {.count = either.count, .tag = tag, .verb = Verb::send, .type = either.type};
  call.buffers = {out.data, in.data, nullptr};
  call.combine = nullptr;
  call.divide = nullptr;
  call.element = either.element;
  queue_->start_message(*group_, call);
  return Work{*queue_, *group_, call};
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
