#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/algorithm/select.hpp>
#include <pdp/comm/call_queue.hpp>
#include <pdp/comm/calls.hpp>

namespace pdp::comm {

/// One rank of a group, and its calls with the types of their elements erased: all of a communicator that depends on the transport only.
/// Sub-groups share the transport and live on their own.
template <Transport T>
class Member {
  using Queue = CallQueue<T>;
  using Group = typename Queue::Group;

 public:
  static constexpr bool fails_fast = true;

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
  [[nodiscard]] int size() const { return static_cast<int>(group_->ranks.size()); }
  [[nodiscard]] Duration deadline() const { return queue_->deadline(); }
  void deadline(Duration duration) { queue_->deadline(duration); }
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

 private:
  Member(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank);

  Work begin(Verb verb, Memory in, Memory out, const algorithm::Extent& extent, std::size_t count, int root, Reducer reducer);
  void check_peer(const char* does, int peer, int tag) const;
  void check_root(Verb verb, int root) const;
  /// The shards of a call, after a look at what was given for them. `place`: which of the group's two tables they may use.
  Shards shards(Verb verb, const Memory* whole, const Memory* shard, Counts counts, std::size_t place);
  static std::uint64_t channel_of(std::uint64_t parent, std::uint64_t call, int color);

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Group> group_;
  int rank_ = 0;
};

template <Transport T>
Member<T>::Member(T transport, Duration deadline)
    : queue_{std::make_shared<Queue>(std::move(transport), deadline)},
      group_{std::make_unique<Group>()},
      rank_{queue_->transport().rank()} {
  group_->ranks.resize(static_cast<std::size_t>(queue_->transport().size()));
  std::ranges::generate(group_->ranks, [rank = 0]() mutable { return rank++; });
  group_->channel = Envelope::world;
  queue_->attach(*group_);
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
  return *this;
}
template <Transport T>
Member<T>::~Member() {
  if (group_) queue_->detach(*group_);
}

template <Transport T>
void Member<T>::Work::wait() {
  if (pending()) queue_->finish(*group_, *call_);
  call_ = nullptr;
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
Member<T> Member<T>::split(int color, int key) {
  const std::array<std::int32_t, 2> mine{color, key};
  std::vector<std::int32_t> all(2 * group_->ranks.size());
  const auto memory = [](auto& values) {
    return Memory{const_cast<std::byte*>(reinterpret_cast<const std::byte*>(values.data())), values.size(), sizeof(std::int32_t),
                  DType::int32};
  };
  collective(Verb::all_gather, memory(all), memory(mine), Counts{}, -1).wait();
  std::vector<std::pair<int, int>> members;  // key, rank in this group
  for (int rank = 0; rank < size(); ++rank)
    if (all[2 * static_cast<std::size_t>(rank)] == color) members.emplace_back(all[2 * static_cast<std::size_t>(rank) + 1], rank);
  std::ranges::sort(members);
  auto group = std::make_unique<Group>();
  int rank_in_group = 0;
  for (const auto& [member_key, rank] : members) {
    if (rank == rank_) rank_in_group = static_cast<int>(group->ranks.size());
    group->ranks.push_back(group_->ranks[static_cast<std::size_t>(rank)]);
  }
  group->channel = channel_of(group_->channel, group_->calls, color);
  return Member{queue_, std::move(group), rank_in_group};
}

template <Transport T>
typename Member<T>::Work Member<T>::collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  if (verb == Verb::broadcast || verb == Verb::reduce) check_root(verb, root);
  return begin(verb, in, out, {.count = in.count}, in.count, root, reducer);
}

template <Transport T>
typename Member<T>::Work Member<T>::collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  const bool rooted = verb == Verb::gather || verb == Verb::scatter;
  if (rooted) check_root(verb, root);
  const Shards cut = shards(verb, rooted && rank_ != root ? nullptr : &whole, &shard, counts, 0);
  const bool spreads = verb == Verb::scatter || verb == Verb::reduce_scatter;
  return begin(verb, spreads ? whole : shard, spreads ? shard : whole, {.shards = cut}, counts.empty() ? shard.count : cut.begin(size()),
               root, reducer);
}

template <Transport T>
typename Member<T>::Work Member<T>::all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  const bool equal = sent.empty() && received.empty();
  if (equal && in.count != out.count)
    throw ShapeError{text("all_to_all on rank ", rank_, " reads ", in.count, " elements and writes ", out.count, "; both must be as many")};
  if (in.data < out.data + out.count * out.element && out.data < in.data + in.count * in.element)
    throw ConfigError{text("all_to_all on rank ", rank_, " reads and writes the same memory; it cannot work in place")};
  const Memory one_in{.count = in.count / static_cast<std::size_t>(size())}, one_out{.count = out.count / static_cast<std::size_t>(size())};
  const Shards sending = shards(Verb::all_to_all, &in, equal ? &one_in : nullptr, sent, 0);
  const Shards receiving = shards(Verb::all_to_all, &out, equal ? &one_out : nullptr, received, 1);
  // Ranks may differ in what they send where they say so for each; then only the messages show whether two agree.
  return begin(Verb::all_to_all, in, out, {.shards = sending, .received = receiving}, equal ? one_in.count : 0, -1, {});
}

template <Transport T>
typename Member<T>::Work Member<T>::begin(Verb verb, Memory in, Memory out, const algorithm::Extent& extent, std::size_t count, int root,
                                          Reducer reducer) {
  if (in.type != out.type)
    throw ShapeError{
        text(name(verb), " on rank ", rank_, " reads ", name(in.type), " and writes ", name(out.type), "; both must be of one type")};
  Call& call = queue_->fresh();
  call.envelope = {.channel = group_->channel, .count = count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction};
  bool together = false;
  if constexpr (GroupTransport<T>) together = size() > 1 && queue_->transport().takes(call.envelope);
  if (together) {
    call.schedule.clear();
    call.schedule.copy(Step::Buffer::output, 0, Step::Buffer::input, 0, out.count);
    call.schedule.together(out.count);
  } else {
    algorithm::select(call.schedule, verb, rank_, size(), root, extent, in.element);
  }
  call.buffers = {in.data, out.data, nullptr};
  call.combine = reducer.combine;
  call.divide = verb == Verb::reduce && rank_ != root ? nullptr : reducer.divide;
  call.divisible = out.data;
  call.divisible_bytes = out.count * out.element;
  call.element = in.element;
  queue_->start(*group_, call);
  return Work{*queue_, *group_, call};
}

template <Transport T>
typename Member<T>::Work Member<T>::exchange(Memory out, int to, Memory in, int from, int tag) {
  if (to != nobody) check_peer("send to", to, tag);
  if (from != nobody) check_peer("receive from", from, tag);
  if (to != nobody && from != nobody && in.type != out.type)
    throw ShapeError{
        text("send_recv on rank ", rank_, " sends ", name(out.type), " and receives ", name(in.type), "; both must be of one type")};
  Call& call = queue_->fresh();
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

template <Transport T>
void Member<T>::check_peer(const char* does, int peer, int tag) const {
  if (peer < 0 || peer >= size())
    throw ConfigError{text("rank ", rank_, " cannot ", does, " rank ", peer, " of a group of ", size(), " ranks")};
  if (peer == rank_) throw ConfigError{text("rank ", rank_, " cannot ", does, " itself; copy the values")};
  if (tag < 0) throw ConfigError{text("rank ", rank_, " cannot ", does, " rank ", peer, " with tag ", tag, "; tags are 0 or more")};
}

template <Transport T>
void Member<T>::check_root(Verb verb, int root) const {
  if (root < 0 || root >= size())
    throw ConfigError{text(name(verb), " on rank ", rank_, " names root ", root, ", but the group has ranks 0 to ", size() - 1)};
}

template <Transport T>
Shards Member<T>::shards(Verb verb, const Memory* whole, const Memory* shard, Counts counts, std::size_t place) {
  const auto ranks = static_cast<std::size_t>(size());
  if (counts.empty() && shard != nullptr) {
    if (whole != nullptr && whole->count != shard->count * ranks)
      throw ShapeError{text(name(verb), " on rank ", rank_, ": the whole must be ", size(), " shards of ", shard->count, " elements, ",
                            shard->count * ranks, ", but it has ", whole->count)};
    return Shards{shard->count};
  }
  if (counts.size() != ranks)
    throw ShapeError{text(name(verb), " on rank ", rank_, " was given ", counts.size(), " counts for ", size(), " ranks")};
  std::vector<std::size_t>& begins = group_->begins[place];
  begins.assign(ranks + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), begins.begin() + 1);
  if (shard != nullptr && shard->count != counts[static_cast<std::size_t>(rank_)])
    throw ShapeError{text(name(verb), " on rank ", rank_, ": the counts give this rank ", counts[static_cast<std::size_t>(rank_)],
                          " elements, but its shard has ", shard->count)};
  if (whole != nullptr && whole->count != begins.back())
    throw ShapeError{
        text(name(verb), " on rank ", rank_, ": the counts add up to ", begins.back(), " elements, but the whole has ", whole->count)};
  return Shards{std::span<const std::size_t>{begins}};
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
