#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/gloo/call.hpp>
#include <pdp/comm/gloo/world.hpp>
#include <pdp/comm/os/waiting.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::gloo {

/// One rank's calls in one group. Collectives run one after another, in the order of the calls. A blocking call runs on the caller's thread
/// if no collective is in flight. Other collectives run on a thread of the group, which is started for the first of them. Each group has a
/// thread of its own, so ranks may wait for calls of different groups in different orders. Messages need no thread: Gloo moves them.
class Lane {
 public:
  /// `group`: null if this rank is alone in it.
  Lane(std::shared_ptr<World> world, std::shared_ptr<Context> group) : world_{std::move(world)}, group_{std::move(group)} {
    if (group_) collectives_.emplace(group_);
  }
  Lane(Lane&&) = delete;
  ~Lane();

  [[nodiscard]] World& world() const { return *world_; }
  [[nodiscard]] int rank() const { return group_ ? group_->rank : 0; }
  [[nodiscard]] int size() const { return group_ ? group_->size : 1; }

  /// Starts a call. Returns null for a blocking collective that is already complete. Throws ConfigError or ShapeError if the request is
  /// invalid.
  Call* start(const Request& request);
  [[nodiscard]] bool done(Call& call);
  /// Waits until the call has ended, and takes it back. Throws the failure of the world if the call has failed.
  void finish(Call& call);
  /// Takes back a call that its owner does not wait for. First waits for a message up to `looking`. Ends the world unless the call has
  /// ended.
  void abandon(Call& call) noexcept;

  /// Returns a new group of some members of this one. `members`: their ranks in this group, in the order of the new group.
  [[nodiscard]] std::unique_ptr<Lane> part(const std::vector<int>& members, int color) const;

 private:
  static constexpr std::chrono::milliseconds looking{50};  // how long abandon() waits for a message

  /// Fills in the collective of a call and its fingerprint.
  void identify(Call& call, const Request& request, const CheckedRequest& checked);
  void enqueue(Call& call);
  /// Starts to send a message, to receive one, or both.
  Call& exchange(const Request& request, const Envelope& envelope);
  void alone(const Collective& call) const;
  void carry_out(const Collective& call);
  void await(Call& call);
  void work(const std::stop_token& stop);
  /// Returns the world rank that a call waits for, if only one is possible, else -1.
  [[nodiscard]] int awaited(const Call& call) const;
  void give_up(const Call& call) noexcept;
  void take_back(Call& call) {
    call.drop_messages();
    calls_.give_back(call);
  }

  std::shared_ptr<World> world_;
  std::shared_ptr<Context> group_;
  std::optional<Collectives> collectives_;
  std::uint64_t made_ = 0;  // the number of collectives that have been started

  FreeList<Call> calls_;
  std::array<CallChecks::Begins, 2> begins_;  // offsets of the shards of a request while it is checked

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Call* first_ = nullptr;  // the queue of collectives in flight; the first one runs
  Call* last_ = nullptr;
  std::atomic<int> in_flight_{0};
  Looker looker_;
  std::jthread worker_;
};

inline Lane::~Lane() {
  if (const std::lock_guard lock{mutex_}; first_ != nullptr) give_up(*first_);
  worker_.request_stop();
}

inline Call* Lane::start(const Request& request) {
  world_->check();
  const CheckedRequest checked = CallChecks{rank(), size()}.check(request, begins_);
  if (request.verb == Verb::send) return &exchange(request, checked.envelope);
  Call& call = calls_.take();
  identify(call, request, checked);
  if (!group_) {
    alone(call.collective);
  } else if (request.waits_at_once && in_flight_.load(std::memory_order_acquire) == 0) {
    try {
      const Deadlines::Wait wait{world_->deadlines(), call.collective.envelope, awaited(call)};
      carry_out(call.collective);
    } catch (...) {
      calls_.give_back(call);
      throw;
    }
  } else {
    enqueue(call);
    return &call;
  }
  if (!request.waits_at_once) return &call;
  calls_.give_back(call);
  return nullptr;
}

inline void Lane::identify(Call& call, const Request& request, const CheckedRequest& checked) {
  std::swap(call.begins, begins_);  // the checked shards borrow these buffers
  Collective& collective = call.collective;
  collective.in = request.in;
  collective.out = request.out;
  collective.shards = checked.shards;
  collective.received = checked.received;
  collective.reducer = request.reducer;
  collective.envelope = checked.envelope;
  collective.envelope.channel = group_ ? group_->links().channel() : 0;
  collective.envelope.sequence = ++made_;
  const Envelope& envelope = collective.envelope;
  std::uint64_t mixed = mix(envelope.sequence, envelope.count);
  mixed = mix(mixed, static_cast<std::uint64_t>(envelope.root));
  mixed = mix(mixed, static_cast<std::uint64_t>(envelope.verb) | static_cast<std::uint64_t>(envelope.type) << 8 |
                         static_cast<std::uint64_t>(envelope.reduction) << 16);
  if (has_shards(envelope.verb))
    for (const std::size_t each : request.counts) mixed = mix(mixed, each);
  collective.fingerprint = mixed;
}

inline void Lane::enqueue(Call& call) {
  if (!worker_.joinable()) worker_ = std::jthread{[this](const std::stop_token& stop) { work(stop); }};
  call.state.store(Call::State::in_flight, std::memory_order_relaxed);
  call.next = nullptr;
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock{mutex_};
    (first_ == nullptr ? first_ : last_->next) = &call;
    last_ = &call;
  }
  changed_.notify_all();
}

inline Call& Lane::exchange(const Request& request, const Envelope& envelope) {
  const auto slot = [&](const ErasedSpan& memory) {
    return (mix(mix(static_cast<std::uint64_t>(request.tag), memory.count), static_cast<std::uint64_t>(memory.type)) >> 8) | 0xf1ULL << 56;
  };
  Call& call = calls_.take();
  call.collective.envelope = envelope;
  call.collective.envelope.root = request.to != no_peer ? request.to : request.from;
  const Quiet quiet;
  try {
    if (request.from != no_peer) {
      call.receiving = group_->links().buffer(request.out.data, request.out.bytes());
      call.receiving->recv(request.from, slot(request.out), 0, request.out.bytes());
    }
    if (request.to != no_peer) {
      call.sending = group_->links().buffer(request.in.data, request.in.bytes());
      call.sending->send(request.to, slot(request.in), 0, request.in.bytes());
    }
  } catch (const std::exception& error) {
    quiet.take();
    take_back(call);
    world_->explain(call.collective.envelope, group_->links(), error.what());
  }
  call.state.store(Call::State::in_flight, std::memory_order_relaxed);
  return call;
}

inline bool Lane::done(Call& call) {
  if (call.ended()) return true;
  return call.is_message() && (world_->failed() || looker_.done(call));
}

inline void Lane::finish(Call& call) {
  if (!call.is_message()) {
    await(call);
  } else if (looker_.leave(call); !call.ended()) {
    try {
      const Deadlines::Wait wait{world_->deadlines(), call.collective.envelope, awaited(call)};
      do world_->check();
      while (!call.wait_for_messages());
    } catch (const CommunicationError&) {
      take_back(call);
      throw;
    } catch (const std::exception& error) {
      take_back(call);
      world_->explain(call.collective.envelope, group_->links(), error.what());
    }
  }
  const bool complete = call.state.load(std::memory_order_relaxed) == Call::State::complete;
  take_back(call);
  if (!complete) world_->explain(call.collective.envelope, group_->links(), "a connection was closed");
}

inline void Lane::abandon(Call& call) noexcept {
  const bool ended = call.ended() || (call.is_message() && !world_->failed() && looker_.done_within(call, looking));
  if (!ended) give_up(call);
  if (call.is_message()) {
    looker_.leave(call);
  } else {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return call.ended(); });  // returns at once, because the world has ended
  }
  take_back(call);
}

inline std::unique_ptr<Lane> Lane::part(const std::vector<int>& members, int color) const {
  if (members.size() < 2) return std::make_unique<Lane>(world_, nullptr);
  const Links& all = group_->links();
  std::vector<int> ranks;
  int own = 0;
  for (const int member : members) {
    if (member == rank()) own = as_int(ranks.size());
    ranks.push_back(all.in_world(member));
  }
  const std::uint64_t channel = mix(mix(all.channel(), made_), static_cast<std::uint64_t>(color));
  return std::make_unique<Lane>(
      world_, std::make_shared<Context>(std::make_shared<Links>(all.connections(), all.buffers(), std::move(ranks), own, channel)));
}

/// Carries out a collective of a single rank: copies the input to the output.
inline void Lane::alone(const Collective& call) const {
  if (call.out.data != call.in.data && call.out.count > 0) std::memmove(call.out.data, call.in.data, call.out.bytes());
  if (call.reducer.divide != nullptr) call.reducer.divide(call.out.data, call.out.bytes(), 1);
}

inline void Lane::carry_out(const Collective& call) {
  const Quiet quiet;
  try {
    collectives_->run(call);
  } catch (const std::exception& error) {
    quiet.take();
    world_->explain(call.envelope, group_->links(), error.what());
  }
}

inline void Lane::await(Call& call) {
  for (Waiting waiting; waiting.look_again();)
    if (call.ended()) return;
  const Deadlines::Wait wait{world_->deadlines(), call.collective.envelope, awaited(call)};
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return call.ended(); });  // returns at the deadline at the latest, because the world ends then
}

inline void Lane::work(const std::stop_token& stop) {
  Quiet::this_thread();
  std::unique_lock lock{mutex_};
  while (changed_.wait(lock, stop, [this] { return first_ != nullptr; })) {
    Call& call = *first_;
    lock.unlock();
    Call::State end = Call::State::complete;
    try {
      world_->check();
      carry_out(call.collective);
    } catch (const CommunicationError&) {
      end = Call::State::broken;
    }
    lock.lock();
    first_ = call.next;
    call.state.store(end, std::memory_order_release);
    in_flight_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
  }
}

inline int Lane::awaited(const Call& call) const {
  if (call.is_message()) return group_->links().in_world(call.collective.envelope.root);
  return size() == 2 ? group_->links().in_world(1 - rank()) : -1;
}

inline void Lane::give_up(const Call& call) noexcept {
  world_->fail({Failure::Kind::lost, world_->rank(),
                text("rank ", world_->rank(), " abandoned ", comm::describe(call.collective.envelope),
                     " before it was complete; the error of rank ", world_->rank(), " says why")});
}

}  // namespace pdp::comm::gloo
