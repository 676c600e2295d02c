#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/together/meetings.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/os/doorbell.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/comm/thread/world.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

/// Messages between threads of one process. Nothing is copied on the way: the receiver takes the values from the sender's memory, so a send
/// is done when it has been received. All-reduce and barrier need no messages (see together::Meeting).
class ThreadTransport {
  using Meetings = together::Meetings<thread::OneSpace, Doorbell, thread::Memory>;

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
    sent_ = std::move(other.sent_);
    receives_ = std::move(other.receives_);
    calls_ = std::move(other.calls_);
    meetings_ = std::move(other.meetings_);
    seen_ = other.seen_;
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
  [[nodiscard]] int size() const { return as_int(world_->mailboxes.size()); }

  void post(SendRequest& send) {
    send.done.store(false, std::memory_order_relaxed);
    send.next = nullptr;
    Mailbox& to = mailbox(send.peer);
    {
      const std::lock_guard lock{to.mutex};
      to.sends.emplace_back(rank_, &send);
    }
    ++sent_[as_size(send.peer)];
    to.bell.ring();
  }

  void post(ReceiveRequest& receive) {
    receive.done = false;
    receives_.push_back(&receive);
  }

  void post(GroupRequest& request) {
    request.done = false;
    request.missing = rank_;
    if (failure() != nullptr) return;
    meetings_.begin(request);
    meet();
  }

  using Shared = thread::Memory;
  static constexpr std::size_t board_bytes = sizeof(together::Board);
  static Shared share(std::size_t bytes) { return Shared::create(bytes); }
  static Shared open(const SharedAddress& address, std::size_t) { return Shared::open(address); }
  [[nodiscard]] static bool near(const std::vector<int>&) { return true; }
  void add_group(const GroupPlace& place, std::vector<Shared> boards) {
    std::vector<together::Partner<Doorbell>> members;
    for (std::size_t member = 0; member < boards.size(); ++member)
      members.push_back(
          {place.ranks[member], reinterpret_cast<together::Board*>(boards[member].data()), &mailbox(place.ranks[member]).bell});
    meetings_.add(place.channel, std::move(members), place.rank, std::move(boards));
  }
  void remove_group(std::uint64_t channel) { meetings_.remove(channel); }
  Region add_arena(const GroupPlace& place, std::uint64_t, std::vector<Shared> memories) {
    std::vector<std::byte*> parts;
    for (const Shared& each : memories) parts.push_back(each.data());
    const Shared own = memories[as_size(place.rank)];
    return {own.data(), own.size(), std::make_shared<std::vector<Shared>>(std::move(memories)), std::move(parts)};
  }

  bool progress() {
    if (world_->failed.load(std::memory_order_acquire)) {
      withdraw();
      world_->failure.raise();
    }
    seen_ = mailbox(rank_).bell.rings();
    bool moved = meet();
    moved = (!receives_.empty() && receive()) || moved;
    if (!moved && world_->left.load(std::memory_order_acquire) > 0) check_peers();
    return moved;
  }

  void wait(TimePoint until) {
    Doorbell& bell = mailbox(rank_).bell;
    for (auto* meeting : meetings_.active())
      if (const int missing = meeting->missing(); missing >= 0) meeting->request()->missing = missing;
    bell.wait(seen_, std::min(until, Clock::now() + patience));
    if (bell.rings() == seen_) compare_calls();
  }

  void send_probe(Probe probe, int peer, const SendRequest* send);
  std::optional<ReceivedProbe> take_probe();

  void fail(Failure failure) {
    {
      const std::lock_guard lock{world_->failing};
      if (!world_->failed.load(std::memory_order_relaxed)) {
        world_->failure = std::move(failure);
        world_->failed.store(true, std::memory_order_seq_cst);
      }
    }
    withdraw();
    for (Mailbox& each : world_->mailboxes) each.bell.ring();
  }

  [[nodiscard]] const Failure* failure() const { return world_->failed.load(std::memory_order_acquire) ? &world_->failure : nullptr; }

 private:
  using Mailbox = thread::Mailbox;
  using World = thread::World;

  static constexpr Duration patience = std::chrono::milliseconds{100};

  ThreadTransport(std::shared_ptr<World> world, int rank) : world_{std::move(world)}, rank_{rank}, sent_(world_->mailboxes.size()) {
    receives_.reserve(thread::in_flight);
    calls_.reserve(thread::in_flight);
    std::vector<together::Partner<Doorbell>> all;
    auto* const boards = reinterpret_cast<together::Board*>(world_->boards.data());
    for (int peer = 0; peer < size(); ++peer) all.push_back({peer, boards + peer, &mailbox(peer).bell});
    meetings_.add(Envelope::world, std::move(all), rank);
  }

  [[nodiscard]] Mailbox& mailbox(int rank) const { return world_->mailboxes[as_size(rank)]; }

  /// The first message for a receive; own.sends.end() if there is none. The mailbox is locked.
  static std::vector<std::pair<int, SendRequest*>>::iterator find_message(Mailbox& own, const ReceiveRequest& receive) {
    return std::ranges::find_if(own.sends, [&](const auto& sent) {
      return sent.first == receive.peer && sent.second->envelope.channel == receive.envelope.channel &&
             sent.second->envelope.tag == receive.envelope.tag;
    });
  }

  /// Moves the collectives that go without messages. When the world has failed, other ranks take back what they have lent to them, and wait
  /// until nobody is at it: so this rank first says that it will be, and then looks whether the world still stands.
  bool meet() {
    if (meetings_.active().empty()) return false;
    Mailbox& own = mailbox(rank_);
    bool moved = false, ended = false;
    Failure wrong;
    own.meets.store(true, std::memory_order_seq_cst);
    if (!world_->failed.load(std::memory_order_seq_cst))
      for (auto* meeting : meetings_.active()) {
        const GroupRequest* const request = meeting->request();
        moved = meeting->advance() || moved;
        if (meeting->fault()) wrong = find_earlier(request->envelope).value_or(std::move(*meeting->fault()));
        ended = ended || request->done;
      }
    own.meets.store(false, std::memory_order_release);
    if (!wrong.message.empty()) end(std::move(wrong));
    if (ended) meetings_.remove_ended();
    return moved;
  }
  /// Takes what has come for this rank and is expected.
  bool receive() {
    Mailbox& own = mailbox(rank_);
    bool moved = false;
    Failure wrong;
    {
      const std::lock_guard lock{own.mutex};
      std::erase_if(receives_, [&](ReceiveRequest* receive) {
        const auto found = find_message(own, *receive);
        if (found == own.sends.end()) return false;
        SendRequest& send = *found->second;
        if (send.envelope != receive->envelope) {
          if (wrong.message.empty()) wrong = mismatch(receive->envelope, rank_, send.envelope, receive->peer);
          return false;
        }
        take(send, *receive);
        own.sends.erase(found);
        ++own.taken[as_size(receive->peer)];
        send.done.store(true, std::memory_order_release);
        mailbox(receive->peer).bell.ring();
        return moved = true;
      });
    }
    if (!wrong.message.empty()) end(std::move(wrong));
    return moved;
  }

  static void take(const SendRequest& send, ReceiveRequest& receive) {
    const std::size_t bytes = as_size(send.envelope.bytes);
    if (receive.consume != nullptr)
      receive.consume(receive.data, send.data, bytes);
    else if (bytes > 0)
      std::memcpy(receive.data, send.data, bytes);
    receive.done = true;
  }

  /// What others have sent in a call before this one and nobody expects, which tells more than the call itself.
  [[nodiscard]] std::optional<Failure> find_earlier(const Envelope& call);
  /// A rank that has left can send nothing more, and take nothing.
  void check_peers();
  /// The first message in the mailbox of a rank that comes from another one.
  [[nodiscard]] std::optional<Envelope> has_message(int of, int from) const;
  /// Ranks whose calls differ may all wait for a message that nobody sends, or for one of theirs to be taken, so that no message meets a
  /// receive that shows it. So a rank that has waited for long shows its calls, and looks at those that the others have shown.
  void compare_calls();

  [[noreturn]] void end(Failure failure) {
    fail(std::move(failure));
    world_->failure.raise();
  }

  /// After this nobody touches a request of this rank.
  void withdraw() {
    receives_.clear();
    meetings_.drop();
    for (Mailbox& each : world_->mailboxes)
      while (failure() != nullptr && &each != &mailbox(rank_) && each.meets.load(std::memory_order_seq_cst)) sched_yield();
    for (Mailbox& each : world_->mailboxes) {
      const std::lock_guard lock{each.mutex};
      std::erase_if(each.sends, [this](const auto& sent) { return sent.first == rank_; });
    }
  }

  std::shared_ptr<World> world_;
  int rank_ = 0;
  std::vector<std::uint64_t> sent_;  // messages, by receiver
  std::vector<ReceiveRequest*> receives_;
  std::vector<Envelope> calls_;  // of compare_calls()
  Meetings meetings_;
  std::uint32_t seen_ = 0;  // rings of the bell before the last look
};
static_assert(ArenaTransport<ThreadTransport> && CarriesProbes<ThreadTransport>);

}  // namespace pdp::comm

#include <pdp/comm/thread/peers.hpp>
#include <pdp/comm/thread/probes.hpp>
