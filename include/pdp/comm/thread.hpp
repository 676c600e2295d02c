#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/doorbell.hpp>

namespace pdp::comm {

/// Messages between threads of one process. Nothing is copied on the way: the receiver takes the values from the sender's memory, so a send
/// is done when it has been received.
class ThreadTransport {
 public:
  /// The transports of all ranks of a new world; each goes to a thread of its own.
  static std::vector<ThreadTransport> world(int size) {
    if (size < 1) throw ConfigError{text("a world of ", size, " ranks was asked for; it takes at least 1")};
    const auto shared = std::make_shared<World>(size);
    std::vector<ThreadTransport> transports;
    for (int rank = 0; rank < size; ++rank) transports.push_back(ThreadTransport{shared, rank});
    return transports;
  }

  ThreadTransport(ThreadTransport&&) noexcept = default;
  ThreadTransport& operator=(ThreadTransport&& other) noexcept {
    ThreadTransport old{std::move(*this)};
    world_ = std::move(other.world_);
    rank_ = other.rank_;
    receives_ = std::move(other.receives_);
    return *this;
  }
  ~ThreadTransport() {
    if (!world_) return;
    withdraw();
    mailbox(rank_).gone.store(true, std::memory_order_release);
    for (Mailbox& each : world_->mailboxes) each.bell.ring();
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(world_->mailboxes.size()); }

  void post(SendRequest& send) {
    send.done.store(false, std::memory_order_relaxed);
    send.next = nullptr;
    Mailbox& to = mailbox(send.peer);
    {
      const std::lock_guard lock{to.mutex};
      to.sends.emplace_back(rank_, &send);
    }
    to.bell.ring();
  }

  void post(ReceiveRequest& receive) {
    receive.done = false;
    receives_.push_back(&receive);
  }

  bool progress() {
    if (world_->failed.load(std::memory_order_acquire)) {
      withdraw();
      world_->failure.raise();
    }
    Mailbox& own = mailbox(rank_);
    seen_ = own.bell.rings();
    if (receives_.empty()) return false;
    bool moved = false;
    Failure wrong;
    {
      const std::lock_guard lock{own.mutex};
      std::erase_if(receives_, [&](ReceiveRequest* receive) {
        const auto found = std::ranges::find_if(own.sends, [&](const auto& sent) {
          return sent.first == receive->peer && sent.second->envelope.channel == receive->envelope.channel &&
                 sent.second->envelope.tag == receive->envelope.tag;
        });
        if (found == own.sends.end()) return false;
        SendRequest& send = *found->second;
        if (send.envelope != receive->envelope) {
          if (wrong.message.empty()) wrong = mismatch(receive->envelope, rank_, send.envelope, receive->peer);
          return false;
        }
        take(send, *receive);
        own.sends.erase(found);
        send.done.store(true, std::memory_order_release);
        mailbox(receive->peer).bell.ring();
        return moved = true;
      });
    }
    if (!wrong.message.empty()) {
      fail(std::move(wrong));
      world_->failure.raise();
    }
    if (!moved) check_peers();
    return moved;
  }

  void wait(TimePoint until) { mailbox(rank_).bell.wait(seen_, until); }

  void fail(Failure failure) {
    {
      const std::lock_guard lock{world_->failing};
      if (!world_->failed.load(std::memory_order_relaxed)) {
        world_->failure = std::move(failure);
        world_->failed.store(true, std::memory_order_release);
      }
    }
    withdraw();
    for (Mailbox& each : world_->mailboxes) each.bell.ring();
  }

  [[nodiscard]] const Failure* failure() const { return world_->failed.load(std::memory_order_acquire) ? &world_->failure : nullptr; }

 private:
  /// What is on its way to one rank, with the rank it comes from.
  struct Mailbox {
    std::mutex mutex;
    std::vector<std::pair<int, SendRequest*>> sends;
    std::atomic<bool> gone{false};
    Doorbell bell;
  };
  struct World {
    explicit World(int size) : mailboxes(static_cast<std::size_t>(size)) {}
    std::vector<Mailbox> mailboxes;
    std::mutex failing;
    std::atomic<bool> failed{false};
    Failure failure;
  };

  ThreadTransport(std::shared_ptr<World> world, int rank) : world_{std::move(world)}, rank_{rank} {}

  [[nodiscard]] Mailbox& mailbox(int rank) const { return world_->mailboxes[static_cast<std::size_t>(rank)]; }

  static void take(const SendRequest& send, ReceiveRequest& receive) {
    const std::size_t bytes = static_cast<std::size_t>(send.envelope.bytes);
    if (receive.consume != nullptr)
      receive.consume(receive.data, send.data, bytes);
    else if (bytes > 0)
      std::memcpy(receive.data, send.data, bytes);
    receive.done = true;
  }

  /// A rank that has left can send nothing more.
  void check_peers() {
    for (const ReceiveRequest* receive : receives_)
      if (mailbox(receive->peer).gone.load(std::memory_order_acquire) && !has_message_from(receive->peer)) {
        fail({Failure::Kind::lost, receive->peer,
              text("rank ", rank_, " expects ", describe(receive->envelope), " from rank ", receive->peer,
                   ", which has ended its part; all ranks must make the same calls")});
        world_->failure.raise();
      }
  }
  [[nodiscard]] bool has_message_from(int peer) const {
    const std::lock_guard lock{mailbox(rank_).mutex};
    return std::ranges::any_of(mailbox(rank_).sends, [peer](const auto& sent) { return sent.first == peer; });
  }

  /// After this nobody touches a request of this rank.
  void withdraw() {
    receives_.clear();
    for (Mailbox& each : world_->mailboxes) {
      const std::lock_guard lock{each.mutex};
      std::erase_if(each.sends, [this](const auto& sent) { return sent.first == rank_; });
    }
  }

  std::shared_ptr<World> world_;
  int rank_ = 0;
  std::vector<ReceiveRequest*> receives_;
  std::uint32_t seen_ = 0;  // rings of the bell before the last look
};
static_assert(Transport<ThreadTransport>);

/// Ranks that are threads of one process.
class Thread : public BasicCommunicator<ThreadTransport> {
 public:
  explicit Thread(ThreadTransport transport) : BasicCommunicator{std::move(transport)} {}
  Thread(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Thread split(int color, int key) { return BasicCommunicator::split(color, key); }

  /// All ranks of a new world; each goes to a thread of its own.
  static std::vector<Thread> world(int size) {
    std::vector<Thread> ranks;
    for (ThreadTransport& transport : ThreadTransport::world(size)) ranks.emplace_back(std::move(transport));
    return ranks;
  }
};

static_assert(Communicator<Thread> && HasReduceScatter<Thread> && FailsFast<Thread>);

}  // namespace pdp::comm
