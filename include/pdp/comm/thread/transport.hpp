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

  void send_probe(Probe probe, int peer, const SendRequest* send) {
    {
      Mailbox& taker = mailbox(send != nullptr ? peer : rank_);
      const int sender = send != nullptr ? rank_ : peer;
      const std::lock_guard lock{taker.mutex};
      probe.received = taker.taken[as_size(sender)];
      bool found = false;
      for (const auto& [from, sent] : taker.sends) {
        if (from != sender) continue;
        const bool expected = sent->envelope.channel == probe.call.channel && sent->envelope.tag == probe.call.tag;
        found = found || (send != nullptr ? sent == send : expected);
        if (send == nullptr) ++probe.received;  // it lies here, and this rank does not wait for it
      }
      if (probe.kind != Probe::Kind::meeting && found != (send != nullptr)) return;  // what is asked for has just come about
    }
    Mailbox& to = mailbox(peer);
    {
      const std::lock_guard lock{to.mutex};
      to.probes.push_back({probe, rank_});
      to.probed.store(true, std::memory_order_relaxed);
    }
    to.bell.ring();
  }
  std::optional<ReceivedProbe> take_probe() {
    Mailbox& own = mailbox(rank_);
    if (!own.probed.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock{own.mutex};
    // A message that came after the last look may let this rank go on: the probes wait until it has been taken.
    for (const ReceiveRequest* receive : receives_)
      if (find_message(own, *receive) != own.sends.end()) return std::nullopt;
    while (!own.probes.empty()) {
      const ReceivedProbe next = own.probes.front();
      own.probes.erase(own.probes.begin());
      const auto from = as_size(next.from);
      const std::uint64_t now = next.probe.kind == Probe::Kind::send ? own.taken[from] : sent_[from];
      if (next.probe.kind == Probe::Kind::meeting || next.probe.received == now) return next;
    }
    own.probed.store(false, std::memory_order_relaxed);
    return std::nullopt;
  }

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
  /// What is on its way to one rank, with the rank it comes from.
  struct Mailbox {
    std::mutex mutex;
    std::vector<std::pair<int, SendRequest*>> sends;
    std::vector<std::uint64_t> taken;   // messages that the owner has received, by sender
    std::vector<ReceivedProbe> probes;  // that the owner has not seen yet
    std::vector<Envelope> calls;        // collectives that the owner has waited for in vain, when it last looked
    std::atomic<bool> probed{false};    // whether there may be probes
    std::atomic<bool> gone{false};
    std::atomic<bool> meets{false};  // the owner is at values of other ranks
    Doorbell bell;
  };
  struct World {
    explicit World(int size) : mailboxes(as_size(size)), boards{thread::Memory::create(mailboxes.size() * sizeof(together::Board))} {
      for (Mailbox& each : mailboxes) {
        each.sends.reserve(in_flight);
        each.calls.reserve(in_flight);
        each.probes.reserve(in_flight);
        each.taken.resize(mailboxes.size());
      }
    }
    std::vector<Mailbox> mailboxes;
    thread::Memory boards;     // of the world, one for each rank
    std::atomic<int> left{0};  // ranks that are gone
    std::mutex failing;
    std::atomic<bool> failed{false};
    Failure failure;
  };

  static constexpr Duration patience = std::chrono::milliseconds{100};
  /// Messages that there is room for from the start: how many meet in a mailbox is a matter of luck, and must not allocate in a later step.
  static constexpr std::size_t in_flight = 64;

  ThreadTransport(std::shared_ptr<World> world, int rank) : world_{std::move(world)}, rank_{rank}, sent_(world_->mailboxes.size()) {
    receives_.reserve(in_flight);
    calls_.reserve(in_flight);
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
    if (ended) meetings_.settle();
    return moved;
  }
  /// What others have sent in a call before this one and nobody expects, which tells more than the call itself.
  [[nodiscard]] std::optional<Failure> find_earlier(const Envelope& call) {
    Mailbox& own = mailbox(rank_);
    const std::lock_guard lock{own.mutex};
    for (const auto& [sender, send] : own.sends)
      if (const Envelope& theirs = send->envelope;
          theirs.tag == Envelope::collective && theirs.channel == call.channel && theirs.sequence < call.sequence)
        return mismatch(call, rank_, theirs, sender);
    return std::nullopt;
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

  /// A rank that has left can send nothing more, and take nothing.
  void check_peers() {
    const auto lost = [this](int peer, const char* does, const Envelope& call, const char* direction) {
      end({Failure::Kind::lost, peer,
           text("rank ", rank_, does, describe(call), direction, peer, ", which has ended its part; all ranks must make the same calls")});
    };
    for (const ReceiveRequest* receive : receives_)
      if (mailbox(receive->peer).gone.load(std::memory_order_acquire) && !has_message(rank_, receive->peer))
        lost(receive->peer, " expects ", receive->envelope, " from rank ");
    for (auto* meeting : meetings_.active())
      if (const int missing = meeting->missing();
          missing >= 0 && mailbox(missing).gone.load(std::memory_order_acquire) && !meeting->ready())
        lost(missing, " expects ", meeting->request()->envelope, " from rank ");
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
    for (const auto* meeting : meetings_.active()) add(meeting->request()->envelope);
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
    const auto compare = [&](const Envelope& theirs, int other) {
      for (Envelope mine : calls_) {
        if (mine.channel != theirs.channel || mine.sequence != theirs.sequence) continue;
        mine.bytes = theirs.bytes;  // of one message, not of the call
        if (mine != theirs) wrong = mismatch(mine, rank_, theirs, other);
      }
    };
    for (int other = 0; other < size(); ++other) {
      if (other == rank_) continue;
      const std::lock_guard lock{mailbox(other).mutex};
      for (const Envelope& theirs : mailbox(other).calls) compare(theirs, other);
    }
    {
      const std::lock_guard lock{mailbox(rank_).mutex};
      for (const auto& [sender, send] : mailbox(rank_).sends)
        if (send->envelope.tag == Envelope::collective) compare(send->envelope, sender);
    }
    // A rank that is in a later call has sent all that it ever will in earlier ones.
    for (const ReceiveRequest* receive : receives_) {
      if (receive->envelope.tag != Envelope::collective || has_message(rank_, receive->peer)) continue;
      const std::lock_guard lock{mailbox(receive->peer).mutex};
      for (const Envelope& theirs : mailbox(receive->peer).calls)
        if (theirs.channel == receive->envelope.channel && theirs.sequence > receive->envelope.sequence)
          wrong = mismatch(receive->envelope, rank_, theirs, receive->peer);
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
