#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/gloo/deadlines.hpp>
#include <pdp/comm/gloo/links.hpp>
#include <pdp/comm/gloo/quiet.hpp>
#include <pdp/comm/gloo/record.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::gloo {

/// The connections of one rank to all others, and how they end. Gloo's errors name no rank, and reach only the waits on the connection that
/// breaks. So each rank posts a receive for the final message (Record) of every other rank. Two threads sleep until something is wrong: one
/// in a Gloo wait that ends when any connection breaks, one until the earliest deadline of a call.
class World {
 public:
  /// `connections`: to all other ranks, by rank; null in a world of one rank. `deadline`: how long a call may wait.
  World(std::shared_ptr<::gloo::transport::Context> connections, int rank, int size, Duration deadline);
  World(World&&) = delete;
  /// Sends a goodbye, so that the other ranks do not treat the closed connections as a failure.
  ~World();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const std::shared_ptr<Context>& everybody() const { return everybody_; }
  [[nodiscard]] Deadlines& deadlines() { return deadlines_; }

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws the failure of the world, if it has failed.
  void check() const {
    if (failed()) failure_.raise();
  }
  /// Ends the world for all ranks: sends the failure to each rank that can be reached, closes all connections and interrupts all waits.
  /// Only the first failure is kept.
  void fail(Failure failure) noexcept;
  /// Ends the world because Gloo has thrown in a call of a group, and throws the failure. First waits up to `settling` for a cause that
  /// names a rank. `thrown`: Gloo's message.
  [[noreturn]] void explain(const Envelope& call, const Links& group, const char* thrown);

 private:
  using GlooBuffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;
  struct Peer {
    Record said;       // its final message, once it has arrived
    GlooBuffer hears;  // receives into `said`
    bool closed = false;
    bool left = false;  // it has sent a goodbye
  };
  // Slots of the World. The slots of Gloo's collectives have small numbers in their highest byte.
  static constexpr std::uint64_t last_words = 0xffULL << 56;
  static constexpr std::uint64_t never_sent = 0xfeULL << 56;
  static constexpr std::chrono::milliseconds telling{100};    // how long sending the final messages may take
  static constexpr std::chrono::milliseconds settling{1000};  // how long after an error its cause may arrive

  [[nodiscard]] Peer& peer(int rank) { return peers_[as_size(rank)]; }
  template <class F>
  void for_each_peer(F&& f) {
    for (int other = 0; other < size_; ++other)
      if (other != rank_) f(other, peer(other));
  }
  void tell(const Record& record) noexcept;
  void close() noexcept;
  int left(const Links& group);
  /// Finds out which connections are closed, and why. Returns the failure that ends the world, if any.
  std::optional<Failure> inspect();
  bool arm();
  void watch();

  int rank_, size_;
  std::shared_ptr<::gloo::transport::Context> connections_;
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::shared_ptr<Context> everybody_;

  std::atomic<bool> failing_{false};
  std::atomic<bool> failed_{false};
  Failure failure_;

  std::mutex peers_mutex_;
  std::vector<Peer> peers_;
  char nothing_ = 0;
  GlooBuffer alarm_;  // its receives never complete; Gloo ends its wait when a connection closes
  std::atomic<bool> leaving_{false};

  Deadlines deadlines_;
  std::jthread watcher_, timer_;
};

inline World::World(std::shared_ptr<::gloo::transport::Context> connections, int rank, int size, Duration deadline)
    : rank_{rank}, size_{size}, connections_{std::move(connections)}, peers_(as_size(size)), deadlines_{rank, deadline} {
  if (size_ == 1) return;
  std::vector<int> ranks(as_size(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  everybody_ = std::make_shared<Context>(std::make_shared<Links>(connections_, buffers_, std::move(ranks), rank_, Links::world));
  const Quiet quiet;
  for_each_peer([&](int other, Peer& each) {
    each.hears = connections_->createUnboundBuffer(&each.said, sizeof each.said);
    try {
      each.hears->recv(other, last_words, 0, sizeof each.said);
    } catch (const std::exception&) {
      quiet.take();  // the peer is already gone; the watcher will notice
    }
  });
  watcher_ = std::jthread{[this] { watch(); }};
  timer_ = std::jthread{[this](const std::stop_token& stop) {
    Quiet::this_thread();
    if (std::optional<Failure> late = deadlines_.watch(stop)) fail(*std::move(late));
  }};
}

inline World::~World() {
  if (size_ == 1) return;
  if (!failed()) tell(Record::goodbye());
  timer_.request_stop();
  const std::lock_guard lock{peers_mutex_};
  leaving_ = true;
  if (alarm_) alarm_->abortWaitRecv();
}

inline void World::fail(Failure failure) noexcept {
  if (failing_.exchange(true)) {
    while (!failed()) std::this_thread::yield();
    return;
  }
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  if (size_ == 1) return;
  tell(Record::of(failure_));
  close();
}

inline void World::explain(const Envelope& call, const Links& group, const char* thrown) {
  for (const TimePoint until = Clock::now() + settling; !failed() && Clock::now() < until;) {
    const int gone = left(group);
    if (gone >= 0) {
      fail({Failure::Kind::lost, gone,
            text("rank ", rank_, " could not finish ", describe(call), ": rank ", gone,
                 " has finished already; all ranks must make the same calls")});
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  fail({Failure::Kind::lost, -1,
        text("rank ", rank_, " could not finish ", describe(call), "; Gloo does not say which rank is gone, but '", thrown, "'")});
  failure_.raise();
}

/// Returns a member that has left the world, or -1.
inline int World::left(const Links& group) {
  const std::lock_guard lock{peers_mutex_};
  for (const int member : group.ranks())
    if (peer(member).left) return member;
  return -1;
}

inline void World::tell(const Record& record) noexcept {
  const Quiet quiet;
  Record words = record;
  const TimePoint until = Clock::now() + telling;
  std::vector<GlooBuffer> sends;
  for_each_peer([&](int other, Peer&) {
    try {
      GlooBuffer send = connections_->createUnboundBuffer(&words, sizeof words);
      send->send(other, last_words, 0, sizeof words);
      sends.push_back(std::move(send));
    } catch (const std::exception&) {
    }
  });
  for (const GlooBuffer& send : sends) {
    try {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      send->waitSend(nullptr, std::max(left, std::chrono::milliseconds::zero()));
    } catch (const std::exception&) {
    }
  }
  sends.clear();
  quiet.take();
}

/// Lets a Gloo wait time out, which closes all connections and ends the waits for messages of which no byte has moved yet. Then interrupts
/// all waits.
inline void World::close() noexcept {
  const Quiet quiet;
  try {
    connections_->createUnboundBuffer(&nothing_, sizeof nothing_)->waitRecv(nullptr, std::chrono::milliseconds::zero());
  } catch (const std::exception&) {
  }
  buffers_->interrupt();
  quiet.take();
}

inline std::optional<Failure> World::inspect() {
  const std::lock_guard lock{peers_mutex_};
  std::optional<Failure> told, lost;
  for_each_peer([&](int other, Peer& each) {
    if (each.closed) return;
    try {
      connections_->createUnboundBuffer(&nothing_, sizeof nothing_)->recv(other, never_sent, 0, sizeof nothing_);
      return;
    } catch (const std::exception&) {
      each.closed = true;
    }
    try {
      each.hears->waitRecv(nullptr, std::chrono::milliseconds::zero());  // a message that arrived before the connection closed is complete
    } catch (const std::exception&) {
    }
    each.left = each.said.kind == Record::Kind::goodbye;
    if (each.said.kind == Record::Kind::failure && !told) told = each.said.to_failure();
    if (each.said.kind == Record::Kind::none && !lost)
      lost = Failure{Failure::Kind::lost, other,
                     text("rank ", other, " is gone: its connection to rank ", rank_, " closed unexpectedly; its own output says why")};
  });
  return told ? told : lost;
}

/// Prepares the wait of the watcher: posts a receive from each peer, which fails when the connection closes. Returns false if a connection
/// has closed already, or if this rank leaves.
inline bool World::arm() {
  const std::lock_guard lock{peers_mutex_};
  if (leaving_) return false;
  alarm_ = connections_->createUnboundBuffer(&nothing_, sizeof nothing_);
  bool armed = true;
  for_each_peer([&](int other, const Peer& each) {
    if (!each.closed) {
      try {
        alarm_->recv(other, never_sent, 0, sizeof nothing_);
      } catch (const std::exception&) {
        armed = false;
      }
    }
  });
  return armed;
}

inline void World::watch() {
  Quiet::this_thread();
  while (!leaving_ && !failed()) {
    if (arm()) try {
        alarm_->waitRecv(nullptr, no_timeout);
      } catch (const std::exception&) {
      }
    if (leaving_ || failed()) return;
    if (std::optional<Failure> cause = inspect()) return fail(*std::move(cause));
  }
}

}  // namespace pdp::comm::gloo
