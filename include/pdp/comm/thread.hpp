#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
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
    world_->left.fetch_add(1, std::memory_order_release);
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
    seen_ = mailbox(rank_).bell.rings();
    const bool moved = !receives_.empty() && receive();
    if (!moved && world_->left.load(std::memory_order_acquire) > 0) check_peers();
    return moved;
  }

  void wait(TimePoint until) {
    Doorbell& bell = mailbox(rank_).bell;
    bell.wait(seen_, std::min(until, Clock::now() + patience));
    if (bell.rings() == seen_) compare_calls();
  }

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
    std::vector<Envelope> calls;  // collectives that the owner has waited for in vain, when it last looked
    std::atomic<bool> gone{false};
    Doorbell bell;
  };
  struct World {
    explicit World(int size) : mailboxes(static_cast<std::size_t>(size)) {
      for (Mailbox& each : mailboxes) each.sends.reserve(in_flight), each.calls.reserve(in_flight);
    }
    std::vector<Mailbox> mailboxes;
    std::atomic<int> left{0};  // ranks that are gone
    std::mutex failing;
    std::atomic<bool> failed{false};
    Failure failure;
  };

  static constexpr Duration patience = std::chrono::milliseconds{100};
  /// Messages that there is room for from the start: how many meet in a mailbox is a matter of luck, and must not allocate in a later step.
  static constexpr std::size_t in_flight = 64;

  ThreadTransport(std::shared_ptr<World> world, int rank) : world_{std::move(world)}, rank_{rank} {
    receives_.reserve(in_flight);
    calls_.reserve(in_flight);
  }

  [[nodiscard]] Mailbox& mailbox(int rank) const { return world_->mailboxes[static_cast<std::size_t>(rank)]; }

  /// Takes what has come for this rank and is expected.
  bool receive() {
    Mailbox& own = mailbox(rank_);
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
    if (!wrong.message.empty()) end(std::move(wrong));
    return moved;
  }

  static void take(const SendRequest& send, ReceiveRequest& receive) {
    const std::size_t bytes = static_cast<std::size_t>(send.envelope.bytes);
    if (receive.consume != nullptr)
      receive.consume(receive.data, send.data, bytes);
    else if (bytes > 0)
      std::memcpy(receive.data, send.data, bytes);
    receive.done = true;
  }

  /// A rank that has left can send nothing more, and take nothing.
  void check_peers() {
    const auto lost = [this](int peer, const char* does, const Envelope& call, const char* direction) {
      end({Failure::Kind::lost, peer,
           text("rank ", rank_, does, describe(call), direction, peer, ", which has ended its part; all ranks must make the same calls")});
    };
    for (const ReceiveRequest* receive : receives_)
      if (mailbox(receive->peer).gone.load(std::memory_order_acquire) && !has_message(rank_, receive->peer))
        lost(receive->peer, " expects ", receive->envelope, " from rank ");
    for (int peer = 0; peer < size(); ++peer)
      if (mailbox(peer).gone.load(std::memory_order_acquire))
        if (const auto send = has_message(peer, rank_)) lost(peer, " has ", *send, " for rank ");
  }
  /// The first message in the mailbox of a rank that comes from another one.
  [[nodiscard]] std::optional<Envelope> has_message(int of, int from) const {
    const std::lock_guard lock{mailbox(of).mutex};
    for (const auto& [sender, send] : mailbox(of).sends)
      if (sender == from) return send->envelope;
    return std::nullopt;
  }

  /// Ranks whose calls differ may all wait for a message that nobody sends, or for one of theirs to be taken, so that no message meets a
  /// receive that shows it. So a rank that has waited for long shows its calls, and looks at those that the others have shown.
  void compare_calls() {
    calls_.clear();
    const auto add = [this](const Envelope& call) {
      if (call.tag == Envelope::collective) calls_.push_back(call);
    };
    for (const ReceiveRequest* receive : receives_) add(receive->envelope);
    for (Mailbox& each : world_->mailboxes) {
      const std::lock_guard lock{each.mutex};
      for (const auto& [sender, send] : each.sends)
        if (sender == rank_) add(send->envelope);
    }
    {
      const std::lock_guard lock{mailbox(rank_).mutex};
      mailbox(rank_).calls = calls_;
    }
    Failure wrong;
    for (int other = 0; other < size(); ++other) {
      if (other == rank_) continue;
      const std::lock_guard lock{mailbox(other).mutex};
      for (const Envelope& theirs : mailbox(other).calls)
        for (Envelope mine : calls_) {
          if (mine.channel != theirs.channel || mine.sequence != theirs.sequence) continue;
          mine.bytes = theirs.bytes;  // of one message, not of the call
          if (mine != theirs) wrong = mismatch(mine, rank_, theirs, other);
        }
    }
    if (!wrong.message.empty()) end(std::move(wrong));
  }

  [[noreturn]] void end(Failure failure) {
    fail(std::move(failure));
    world_->failure.raise();
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
  std::vector<Envelope> calls_;  // of compare_calls()
  std::uint32_t seen_ = 0;       // rings of the bell before the last look
};
static_assert(Transport<ThreadTransport>);

/// Ranks that are threads of one process.
class Thread : public BasicCommunicator<Member<ThreadTransport>> {
 public:
  /// What a command line calls it: --comm thread.
  static constexpr std::string_view name{"thread"};

  explicit Thread(ThreadTransport transport) : BasicCommunicator{Member{std::move(transport)}} {}
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
