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

/// The connections of one rank to all others, and how they end. Gloo's own errors name no rank and reach only those that use a connection
/// which breaks. So each rank has a receive posted from every other one, for that rank's last words, and two threads that sleep until
/// something is wrong: one in a wait of Gloo's that any broken connection ends, one until the earliest deadline of a call.
class World {
 public:
  /// `connections`: to all other ranks, by rank; null in a world of one.
  World(std::shared_ptr<::gloo::transport::Context> connections, int rank, int size, Duration deadline);
  World(World&&) = delete;
  /// Says goodbye, so that the others do not take it for a loss.
  ~World();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const std::shared_ptr<Context>& everybody() const { return everybody_; }
  [[nodiscard]] Deadlines& deadlines() { return deadlines_; }

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws the failure, once there is one.
  void check() const {
    if (failed()) failure_.raise();
  }
  /// Ends the world for every rank: tells each that can be told, closes all connections and interrupts all waits. The first failure stays.
  void fail(Failure failure) noexcept;
  /// Ends the world for what Gloo has thrown in a call of a group, and throws what that means.
  [[noreturn]] void explain(const Envelope& call, const Links& group, const char* thrown);

 private:
  using GlooBuffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;
  struct Peer {
    Record said;
    GlooBuffer hears;
    bool closed = false;
    bool left = false;  // with a goodbye
  };
  // Slots of the world's own. Gloo's collectives have small numbers in their highest byte.
  static constexpr std::uint64_t last_words = 0xffULL << 56;
  static constexpr std::uint64_t never_sent = 0xfeULL << 56;
  static constexpr std::chrono::milliseconds telling{100};    // how long last words may take
  static constexpr std::chrono::milliseconds settling{1000};  // how long the cause of a failure may come after its effect

  [[nodiscard]] Peer& peer(int rank) { return peers_[as_size(rank)]; }
  template <class F>
  void for_each_peer(F&& f) {
    for (int other = 0; other < size_; ++other)
      if (other != rank_) f(other, peer(other));
  }
  void tell(const Record& record) noexcept;
  void close() noexcept;
  int left(const Links& group);
  /// Looks which connections are closed, and why. Gives what ends the world.
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
  GlooBuffer alarm_;  // its receives never get anything; Gloo ends its wait when a connection is closed
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
      quiet.take();  // gone already; the watcher finds that out
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
                 " has ended its part; all ranks must make the same calls")});
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  fail({Failure::Kind::lost, -1,
        text("rank ", rank_, " could not finish ", describe(call), "; Gloo does not say which rank is gone, but '", thrown, "'")});
  failure_.raise();
}

/// A member that has left the world, or -1.
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

/// A wait of Gloo's that is out of time closes all connections and says so to all that wait, but for those that are within a message.
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
      each.hears->waitRecv(nullptr, std::chrono::milliseconds::zero());  // what has come before the end is there
    } catch (const std::exception&) {
    }
    each.left = each.said.kind == Record::Kind::goodbye;
    if (each.said.kind == Record::Kind::failure && !told) told = each.said.to_failure();
    if (each.said.kind == Record::Kind::none && !lost)
      lost = Failure{Failure::Kind::lost, other,
                     text("rank ", other, " is gone: its connection to rank ", rank_, " ended without a word; its own output says why")};
  });
  return told ? told : lost;
}

/// Makes ready for the next connection that is closed. False where one is closed already.
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
