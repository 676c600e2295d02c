#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

#include <pdp/comm/algorithm/select.hpp>
#include <pdp/comm/call_queue.hpp>
#include <pdp/comm/communicator.hpp>

namespace pdp::comm {

/// Something that lies in memory as a span of elements: an array, a vector, a span.
template <class R>
concept Elements =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::remove_cv_t<std::ranges::range_value_t<R>>>;
template <class R>
concept WritableElements = Elements<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Every collective, over any transport. One rank of a group; not shared between threads. Sub-groups share the transport and live on their
/// own.
///
/// Blocking calls are asynchronous ones that wait. A Work must not outlive its communicator.
template <Transport T>
class BasicCommunicator {
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
    friend class BasicCommunicator;
    Work(Queue& queue, Group& group, Call& call) : queue_{&queue}, group_{&group}, call_{&call} {}
    void abandon() noexcept;

    Queue* queue_ = nullptr;
    Group* group_ = nullptr;
    Call* call_ = nullptr;
  };

  /// The world: all ranks of the transport. `deadline`: how long a call may wait.
  explicit BasicCommunicator(T transport, Duration deadline = std::chrono::minutes{5});
  BasicCommunicator(BasicCommunicator&&) noexcept;
  BasicCommunicator& operator=(BasicCommunicator&&) noexcept;
  ~BasicCommunicator();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(group_->ranks.size()); }
  [[nodiscard]] Duration deadline() const { return queue_->deadline(); }
  /// For all groups of this world.
  void deadline(Duration duration) { queue_->deadline(duration); }
  void progress();
  /// Ends the world: every rank throws PeerLost with this rank and this reason from its next call on.
  void abort(const std::string& reason);

  Work send_async(Elements auto&& values, int peer, int tag = 0) { return message(Step::Action::send, memory(values), peer, tag); }
  Work recv_async(WritableElements auto&& values, int peer, int tag = 0) {
    return message(Step::Action::receive, memory(values), peer, tag);
  }
  void send(Elements auto&& values, int peer, int tag = 0) { send_async(values, peer, tag).wait(); }
  void recv(WritableElements auto&& values, int peer, int tag = 0) { recv_async(values, peer, tag).wait(); }

  Work barrier_async() { return collective(Verb::barrier, Memory{}, Memory{}, 0, -1); }
  /// The root's values, on all ranks.
  Work broadcast_async(WritableElements auto&& values, int root) {
    check_root(Verb::broadcast, root);
    return collective(Verb::broadcast, memory(values), memory(values), std::ranges::size(values), root);
  }
  /// In place on the root; the values of the others stay.
  Work reduce_async(WritableElements auto&& values, Operation auto operation, int root) {
    check_root(Verb::reduce, root);
    return collective(Verb::reduce, memory(values), memory(values), std::ranges::size(values), root, reducer(values, operation));
  }
  /// In place; the same bits on all ranks.
  Work all_reduce_async(WritableElements auto&& values, Operation auto operation) {
    return collective(Verb::all_reduce, memory(values), memory(values), std::ranges::size(values), -1, reducer(values, operation));
  }
  /// This rank's shard of the reduction of `whole`, which is size() shards. The shard may lie in its place within the whole.
  Work reduce_scatter_async(Elements auto&& whole, WritableElements auto&& shard, Operation auto operation) {
    check_shards(Verb::reduce_scatter, std::ranges::size(whole), std::ranges::size(shard));
    return collective(Verb::reduce_scatter, memory(whole), memory(shard), std::ranges::size(shard), -1, reducer(shard, operation));
  }
  /// The shards of all ranks, in the order of ranks. The shard may lie in its place within the whole.
  Work all_gather_async(Elements auto&& shard, WritableElements auto&& whole) {
    check_shards(Verb::all_gather, std::ranges::size(whole), std::ranges::size(shard));
    return collective(Verb::all_gather, memory(shard), memory(whole), std::ranges::size(shard), -1);
  }
  /// The shards of all ranks on the root; `whole` is not used elsewhere and may be empty there.
  Work gather_async(Elements auto&& shard, WritableElements auto&& whole, int root) {
    check_root(Verb::gather, root);
    if (rank_ == root) check_shards(Verb::gather, std::ranges::size(whole), std::ranges::size(shard));
    return collective(Verb::gather, memory(shard), memory(whole), std::ranges::size(shard), root);
  }
  /// Each rank's shard of the root's `whole`, which is not used elsewhere and may be empty there.
  Work scatter_async(Elements auto&& whole, WritableElements auto&& shard, int root) {
    check_root(Verb::scatter, root);
    if (rank_ == root) check_shards(Verb::scatter, std::ranges::size(whole), std::ranges::size(shard));
    return collective(Verb::scatter, memory(whole), memory(shard), std::ranges::size(shard), root);
  }

  void barrier() { barrier_async().wait(); }
  void broadcast(WritableElements auto&& values, int root) { broadcast_async(values, root).wait(); }
  void reduce(WritableElements auto&& values, Operation auto operation, int root) { reduce_async(values, operation, root).wait(); }
  void all_reduce(WritableElements auto&& values, Operation auto operation) { all_reduce_async(values, operation).wait(); }
  void reduce_scatter(Elements auto&& whole, WritableElements auto&& shard, Operation auto operation) {
    reduce_scatter_async(whole, shard, operation).wait();
  }
  void all_gather(Elements auto&& shard, WritableElements auto&& whole) { all_gather_async(shard, whole).wait(); }
  void gather(Elements auto&& shard, WritableElements auto&& whole, int root) { gather_async(shard, whole, root).wait(); }
  void scatter(Elements auto&& whole, WritableElements auto&& shard, int root) { scatter_async(whole, shard, root).wait(); }

  /// The group of those ranks that give the same colour, ordered by key and then by rank. Every rank of this group must call it.
  [[nodiscard]] BasicCommunicator split(int color, int key);

 private:
  /// A span of elements with its type erased. What a call only reads is never written through it.
  struct Memory {
    std::byte* data = nullptr;
    std::size_t count = 0;
    std::size_t element = 1;
    DType type = DType::byte;
  };
  template <Elements R>
  static Memory memory(R& elements) {
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(std::ranges::data(elements))), std::ranges::size(elements), sizeof(E),
            dtype_of<E>};
  }

  /// How a call combines values of one type.
  struct Reducer {
    Reduction reduction = Reduction::none;
    Combine combine = nullptr;
    void (*divide)(std::byte*, std::size_t, int) = nullptr;
  };
  template <Elements R, Operation O>
  static Reducer reducer(R&, O) {
    using E = std::remove_cv_t<std::ranges::range_value_t<R>>;
    return {O::reduction, comm::combine<E, O>, O::reduction == Reduction::average ? comm::divide<E> : nullptr};
  }

  BasicCommunicator(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank);

  /// `count`: elements of a shard where the call has shards, else of the whole.
  Work collective(Verb verb, Memory in, Memory out, std::size_t count, int root, Reducer reducer = {});
  Work message(Step::Action action, Memory values, int peer, int tag);

  void check_root(Verb verb, int root) const;
  void check_shards(Verb verb, std::size_t whole, std::size_t shard) const;

  /// The same on all members, and with overwhelming probability on no other group: a mix of where the split was made and of its colour.
  static std::uint64_t channel_of(std::uint64_t parent, std::uint64_t call, int color);

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Group> group_;
  int rank_ = 0;
};

// ---- What does not depend on the types of a call's elements; a transport with a source of its own compiles it there ----------------

template <Transport T>
BasicCommunicator<T>::BasicCommunicator(T transport, Duration deadline)
    : queue_{std::make_shared<Queue>(std::move(transport), deadline)},
      group_{std::make_unique<Group>()},
      rank_{queue_->transport().rank()} {
  group_->ranks.resize(static_cast<std::size_t>(queue_->transport().size()));
  std::ranges::generate(group_->ranks, [rank = 0]() mutable { return rank++; });
  group_->channel = 1;
  queue_->attach(*group_);
}
template <Transport T>
BasicCommunicator<T>::BasicCommunicator(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank)
    : queue_{std::move(queue)}, group_{std::move(group)}, rank_{rank} {
  queue_->attach(*group_);
}
template <Transport T>
BasicCommunicator<T>::BasicCommunicator(BasicCommunicator&&) noexcept = default;
template <Transport T>
BasicCommunicator<T>& BasicCommunicator<T>::operator=(BasicCommunicator&& other) noexcept {
  BasicCommunicator old{std::move(*this)};
  queue_ = std::move(other.queue_);
  group_ = std::move(other.group_);
  rank_ = other.rank_;
  return *this;
}
template <Transport T>
BasicCommunicator<T>::~BasicCommunicator() {
  if (group_) queue_->detach(*group_);
}

template <Transport T>
void BasicCommunicator<T>::Work::wait() {
  if (pending()) queue_->finish(*group_, *call_);
  call_ = nullptr;
}
template <Transport T>
void BasicCommunicator<T>::Work::abandon() noexcept {
  if (pending()) queue_->abandon(*group_, *std::exchange(call_, nullptr));
}

template <Transport T>
void BasicCommunicator<T>::progress() {
  queue_->progress();
}
template <Transport T>
void BasicCommunicator<T>::abort(const std::string& reason) {
  queue_->fail({Failure::Kind::lost, queue_->transport().rank(), reason});
}

template <Transport T>
BasicCommunicator<T> BasicCommunicator<T>::split(int color, int key) {
  const std::array<std::int32_t, 2> mine{color, key};
  std::vector<std::int32_t> all(2 * group_->ranks.size());
  all_gather(mine, all);
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
  return BasicCommunicator{queue_, std::move(group), rank_in_group};
}

template <Transport T>
typename BasicCommunicator<T>::Work BasicCommunicator<T>::collective(Verb verb, Memory in, Memory out, std::size_t count, int root,
                                                                     Reducer reducer) {
  if (in.type != out.type)
    throw ShapeError{
        text(name(verb), " on rank ", rank_, " reads ", name(in.type), " and writes ", name(out.type), "; both must be of one type")};
  Call& call = queue_->fresh();
  algorithm::select(call.schedule, verb, rank_, size(), root, count, in.element);
  call.envelope = {.count = count, .root = root, .verb = verb, .type = in.type, .reduction = reducer.reduction};
  call.buffers = {in.data, out.data, nullptr};
  call.combine = reducer.combine;
  call.divide = verb == Verb::reduce && rank_ != root ? nullptr : reducer.divide;
  call.divisible = out.data;
  call.divisible_bytes = count * out.element;
  call.element = in.element;
  queue_->start(*group_, call);
  return Work{*queue_, *group_, call};
}

template <Transport T>
typename BasicCommunicator<T>::Work BasicCommunicator<T>::message(Step::Action action, Memory values, int peer, int tag) {
  const char* verb = action == Step::Action::send ? "send to" : "receive from";
  if (peer < 0 || peer >= size())
    throw ConfigError{text("rank ", rank_, " cannot ", verb, " rank ", peer, " of a group of ", size(), " ranks")};
  if (peer == rank_) throw ConfigError{text("rank ", rank_, " cannot ", verb, " itself; copy the values")};
  if (tag < 0) throw ConfigError{text("rank ", rank_, " cannot ", verb, " rank ", peer, " with tag ", tag, "; tags are 0 or more")};
  Call& call = queue_->fresh();
  call.schedule.clear();
  if (action == Step::Action::send)
    call.schedule.send(peer, Step::Buffer::input, 0, values.count);
  else
    call.schedule.receive(peer, Step::Buffer::output, 0, values.count);
  call.envelope = {.count = values.count, .tag = tag, .verb = Verb::send, .type = values.type};
  call.buffers = {values.data, values.data, nullptr};
  call.combine = nullptr;
  call.divide = nullptr;
  call.element = values.element;
  queue_->start_message(*group_, call);
  return Work{*queue_, *group_, call};
}

template <Transport T>
void BasicCommunicator<T>::check_root(Verb verb, int root) const {
  if (root < 0 || root >= size())
    throw ConfigError{text(name(verb), " on rank ", rank_, " names root ", root, ", but the group has ranks 0 to ", size() - 1)};
}

template <Transport T>
void BasicCommunicator<T>::check_shards(Verb verb, std::size_t whole, std::size_t shard) const {
  if (whole != shard * static_cast<std::size_t>(size()))
    throw ShapeError{text(name(verb), " on rank ", rank_, ": the whole must be ", size(), " shards of ", shard, " elements, ",
                          shard * static_cast<std::size_t>(size()), ", but it has ", whole)};
}

template <Transport T>
std::uint64_t BasicCommunicator<T>::channel_of(std::uint64_t parent, std::uint64_t call, int color) {
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
