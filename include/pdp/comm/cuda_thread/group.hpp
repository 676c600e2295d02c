#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/cuda_thread/parts.hpp>
#include <pdp/comm/cuda_thread/rank.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::cuda_thread {

/// One rank's view of a group: its members, the stream on which this rank's calls run, and the calls in flight.
///
/// A collective has three steps, and none of them blocks the host:
/// 1. Each rank publishes its call.
/// 2. When a rank sees the calls of all ranks, it enqueues its part on its stream, after the earlier work of all callers' streams.
/// 3. When all ranks have enqueued their parts, each rank's stream waits for all parts.
///
/// The next collective of the group starts step 2 only after step 3. A message is enqueued by its receiver.
///
/// A stream waits only for work that some stream already holds. So the GPUs always finish, whatever the hosts do.
class Group {
 public:
  /// `ranks`: the world ranks of the members, in the order of the group.
  Group(std::shared_ptr<Rank> owner, std::uint64_t channel, std::vector<int> ranks, int rank);
  Group(Group&&) = delete;
  ~Group();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return as_int(ranks_.size()); }
  [[nodiscard]] Rank& owner() const { return *owner_; }
  [[nodiscard]] Rank& common() const { return *owner_; }
  [[nodiscard]] const std::shared_ptr<Rank>& shared_owner() const { return owner_; }
  [[nodiscard]] int rank_in_world(int rank) const { return ranks_[as_size(rank)]; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  /// Returns the number of collectives that have been started.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  /// Returns scratch memory for the offsets of shards, used while a call is checked.
  [[nodiscard]] std::array<CallChecks::Begins, 2>& begins() { return begins_; }

  /// Throws ConfigError for pageable host memory and for memory of another GPU.
  void check_memory(Verb verb, const ErasedSpan& memory) const;
  /// Returns an idle call to be filled in and passed to start() or start_message(). Marks the caller's stream with its `ready` event.
  [[nodiscard]] Call& fresh(const Envelope& envelope);
  Call& start(Call& call);
  Call& start_message(Call& call);
  /// Gathers `mine` of all ranks into `all`, in the order of ranks. Both lie in host memory. Blocks until the call is complete.
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all, Verb verb);

  /// Advances all calls as far as possible without waiting. Returns whether any advanced.
  bool advance();
  /// Returns whether a call is complete. Polls the event of a closed call.
  [[nodiscard]] bool look(Call& call);
  /// Returns a world rank that has not enqueued its part of an open call, or -1 if there is none.
  [[nodiscard]] int missing(const Call& call) const;

 private:
  using State = Call::State;

  [[nodiscard]] World& world() const { return owner_->world(); }
  [[nodiscard]] World::Seat& seat(int rank) const { return world().seat(rank_in_world(rank)); }

  void show(Call& call);
  bool advance_collective(Call& call);
  bool advance_message(Call& call);
  /// Returns the call of rank `other` that belongs to the same collective, or null if it is not published yet.
  [[nodiscard]] Call* find(const Call& call, int other) const;
  /// Finds the calls of all ranks that belong to the same collective. Returns whether all are published.
  [[nodiscard]] bool find_all(Call& call);
  void find_messages();
  /// Ends the world with a mismatch if the call of rank `other` differs from this rank's.
  void compare(const Call& call, const Call& theirs, int other);
  /// Calls f to enqueue work on this rank's stream. If the world has failed, throws its failure instead.
  template <class F>
  void give(const Call& call, const F& f);
  void follow(cudaEvent_t event) { cuda::check("cudaStreamWaitEvent", cudaStreamWaitEvent(stream_, event, 0)); }
  void mark(cudaEvent_t event) { cuda::check("cudaEventRecord", cudaEventRecord(event, stream_)); }
  /// Throws PeerLost if a rank that the call waits for has left without doing its part. First looks once more for a call of that rank.
  void check_peers(const Call& call);
  /// Returns whether rank `other` has published its call or, if this rank has found that call, enqueued its part.
  [[nodiscard]] bool has_shown(const Call& call, int other) const;

  std::shared_ptr<Rank> owner_;
  std::uint64_t channel_;
  std::vector<int> ranks_;
  int rank_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t calls_ = 0;
  std::array<CallChecks::Begins, 2> begins_;
  std::vector<Call*> collectives_, messages_;  // open calls, in order
};

inline Group::Group(std::shared_ptr<Rank> owner, std::uint64_t channel, std::vector<int> ranks, int rank)
    : owner_{std::move(owner)}, channel_{channel}, ranks_{std::move(ranks)}, rank_{rank} {
  const cuda::OnDevice on{owner_->device()};
  // Non-blocking: this stream and the default stream do not wait for each other implicitly.
  cuda::check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  World::Seat& own = owner_->seat();
  const std::lock_guard lock{own.giving};
  own.streams.push_back(stream_);
  owner_->add(*this);
}

inline Group::~Group() {
  owner_->remove(*this);
  World::Seat& own = owner_->seat();
  const std::lock_guard lock{own.giving};
  const cuda::OnDevice on{owner_->device(), std::nothrow};
  if (cudaStreamQuery(stream_) != cudaSuccess) {  // still busy: stays in the list, so that quiesce() can wait for it
    cudaGetLastError();
    return;
  }
  std::erase(own.streams, stream_);
  cudaStreamDestroy(stream_);
}

inline void Group::check_memory(Verb verb, const ErasedSpan& memory) const {
  if (memory.count == 0) return;
  cudaPointerAttributes found{};
  const bool known = cudaPointerGetAttributes(&found, memory.data) == cudaSuccess;
  if (!known) cudaGetLastError();
  if (!known || found.type == cudaMemoryTypeUnregistered)
    throw ConfigError{text(name(verb), " on rank ", rank_, " was given host memory, but needs memory of GPU ", owner_->device(),
                           ": a cuda::Memory, or world.allocate<T>(count)")};
  if (found.type == cudaMemoryTypeDevice && found.device != owner_->device())
    throw ConfigError{text(name(verb), " on rank ", rank_, " was given memory of GPU ", found.device, ", but this rank's calls run on GPU ",
                           owner_->device())};
}

inline Call& Group::fresh(const Envelope& envelope) {
  Call& call = owner_->fresh();
  call.group = this;
  call.state = State::made;
  call.envelope = envelope;
  call.envelope.channel = channel_;
  call.in = call.out = {};
  for (auto& each : call.begins) each.clear();
  call.cut = call.received = {};
  call.to = call.from = no_peer;
  call.on_host = call.has_received = call.sent = false;
  call.found = nullptr;
  call.is_given.store(false, std::memory_order_relaxed);
  call.taken.store(nullptr, std::memory_order_relaxed);
  const cuda::OnDevice on{owner_->device()};  // a null caller is the default stream of this device
  const cudaError_t marked = cudaEventRecord(call.ready, owner_->caller());
  if (marked != cudaSuccess) owner_->rest(call);
  cuda::check("cudaEventRecord", marked);
  return call;
}

inline void Group::show(Call& call) {
  const std::lock_guard lock{world().mutex()};
  owner_->seat().shown.push_back(&call);
}

inline Call& Group::start(Call& call) {
  call.envelope.sequence = ++calls_;
  call.users.store(size() - 1, std::memory_order_relaxed);
  call.all.assign(ranks_.size(), nullptr);
  call.all[as_size(rank_)] = &call;
  collectives_.push_back(&call);
  show(call);
  for (int other = 0; other < size(); ++other)
    if (other != rank_) seat(other).bell.ring();
  owner_->advance();
  return call;
}

inline void Group::exchange_records(std::span<const std::byte> mine, std::span<std::byte> all, Verb verb) {
  Call& call = fresh({.count = mine.size(), .verb = verb, .type = DType::byte});
  call.on_host = true;
  call.in = {const_cast<std::byte*>(mine.data()), mine.size()};  // is only read
  call.out = {all.data(), all.size()};
  start(call);
  owner_->finish(call);
}

inline bool Group::advance() {
  bool moved = false;
  while (!collectives_.empty() && advance_collective(*collectives_.front())) {
    moved = true;
    if (collectives_.front()->state == State::closed) collectives_.erase(collectives_.begin());
  }
  if (messages_.empty()) return moved;
  find_messages();
  for (Call* call : messages_) moved = advance_message(*call) || moved;
  std::erase_if(messages_, [](const Call* call) { return call->state == State::closed; });
  return moved;
}

inline bool Group::advance_collective(Call& call) {
  if (call.state == State::made) {
    if (!find_all(call)) return false;
    give(call, [&] {
      if (call.on_host) {
        for (std::size_t other = 0; other < call.all.size(); ++other)
          std::memcpy(call.out.data + other * call.in.bytes(), call.all[other]->in.data, call.in.bytes());
      } else {
        for (const Call* other : call.all) follow(other->ready);
        Parts{call, rank_, owner_->device(), stream_}.give();
        mark(call.end);
      }
    });
    call.state = State::given;
    call.is_given.store(true, std::memory_order_release);
    for (int other = 0; other < size(); ++other)
      if (other != rank_) seat(other).bell.ring();
    return true;
  }
  for (const Call* other : call.all)
    if (!other->is_given.load(std::memory_order_acquire)) {
      check_peers(call);
      return false;
    }
  if (!call.on_host)
    give(call, [&] {
      for (const Call* other : call.all)
        if (other != &call) follow(other->end);
      mark(call.through);
    });
  {
    const std::lock_guard lock{world().mutex()};
    std::erase(owner_->seat().shown, &call);
  }
  for (Call* other : call.all)
    if (other != &call) other->users.fetch_sub(1, std::memory_order_acq_rel);
  call.state = State::closed;
  return true;
}

inline Call* Group::find(const Call& call, int other) const {
  const std::lock_guard lock{world().mutex()};
  const std::vector<Call*>& shown = seat(other).shown;
  const auto found = std::ranges::find_if(shown, [&](const Call* each) {
    return each->envelope.tag == Envelope::collective && each->envelope.channel == channel_ &&
           each->envelope.sequence == call.envelope.sequence;
  });
  return found == shown.end() ? nullptr : *found;
}

inline bool Group::find_all(Call& call) {
  bool has_all = true;
  for (int other = 0; other < size(); ++other) {
    Call*& theirs = call.all[as_size(other)];
    if (theirs != nullptr) continue;
    theirs = find(call, other);
    if (theirs == nullptr)
      has_all = false;
    else
      compare(call, *theirs, other);
  }
  if (!has_all) check_peers(call);
  return has_all;
}

template <class F>
void Group::give(const Call& call, const F& f) {
  std::optional<Failure> refused;
  {
    const std::lock_guard lock{owner_->seat().giving};
    if (world().failure() == nullptr) {
      const cuda::OnDevice on{owner_->device()};
      try {
        f();
      } catch (const DeviceError& error) {
        refused = {Failure::Kind::lost, owner_->number(),
                   text("rank ", owner_->number(), ": ", describe(call.envelope), ": ", error.what())};
      }
    }
  }
  if (refused) owner_->fail(std::move(*refused));
  owner_->check();
}

inline bool Group::look(Call& call) {
  if (call.state == State::closed && call.on_host) call.state = State::complete;
  if (call.state != State::closed) return call.state == State::complete;
  const cudaError_t found = cudaEventQuery(call.through);
  if (found == cudaErrorNotReady) {
    cudaGetLastError();  // clears the error, so that a later check does not report it
    return false;
  }
  if (found != cudaSuccess)
    owner_->fail({Failure::Kind::lost, owner_->number(),
                  text("rank ", owner_->number(), ": ", describe(call.envelope), ": cudaEventQuery failed: ", cudaGetErrorString(found))});
  call.state = State::complete;
  return true;
}

}  // namespace pdp::comm::cuda_thread
