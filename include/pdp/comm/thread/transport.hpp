#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/together/board.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace thread {
struct Mailbox;
struct World;
class Meetings;
}  // namespace thread

/// Messages between threads of one process. Nothing is copied on the way: the receiver takes the values from the sender's memory, so a send
/// is done when it has been received. All-reduce and barrier need no messages (see together::Meeting).
class ThreadTransport {
 public:
  /// The transports of all ranks of a new world; each goes to a thread of its own.
  static std::vector<ThreadTransport> world(int size);

  ThreadTransport(ThreadTransport&&) noexcept;
  ThreadTransport& operator=(ThreadTransport&& other) noexcept;
  ~ThreadTransport();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const;

  void post(SendRequest& send);
  void post(ReceiveRequest& receive);
  void post(GroupRequest& request);

  using Shared = thread::Memory;
  static constexpr std::size_t board_bytes = sizeof(together::Board);
  static Shared share(std::size_t bytes);
  static Shared open(const SharedAddress& address, std::size_t bytes);
  [[nodiscard]] static bool near(const std::vector<int>&) { return true; }
  void add_group(const GroupPlace& place, std::vector<Shared> boards);
  void remove_group(std::uint64_t channel);
  Region add_arena(const GroupPlace& place, std::uint64_t number, std::vector<Shared> memories);

  bool progress();
  void wait(TimePoint until);

  void send_probe(Probe probe, int peer, const SendRequest* send);
  std::optional<ReceivedProbe> take_probe();

  void fail(Failure failure);
  [[nodiscard]] const Failure* failure() const;

 private:
  using Mailbox = thread::Mailbox;
  using World = thread::World;

  static constexpr Duration patience = std::chrono::milliseconds{100};

  ThreadTransport(std::shared_ptr<World> world, int rank);

  [[nodiscard]] Mailbox& mailbox(int rank) const;

  /// Moves the collectives that go without messages. When the world has failed, other ranks take back what they have lent to them, and wait
  /// until nobody is at it: so this rank first says that it will be, and then looks whether the world still stands.
  bool meet();
  /// Takes what has come for this rank and is expected.
  bool receive();

  /// What others have sent in a call before this one and nobody expects, which tells more than the call itself.
  [[nodiscard]] std::optional<Failure> find_earlier(const Envelope& call);
  /// A rank that has left can send nothing more, and take nothing.
  void check_peers();
  /// The first message in the mailbox of a rank that comes from another one.
  [[nodiscard]] std::optional<Envelope> has_message(int of, int from) const;
  /// Ranks whose calls differ may all wait for a message that nobody sends, or for one of theirs to be taken, so that no message meets a
  /// receive that shows it. So a rank that has waited for long shows its calls, and looks at those that the others have shown.
  void compare_calls();

  [[noreturn]] void end(Failure failure);

  /// After this nobody touches a request of this rank.
  void withdraw();

  std::shared_ptr<World> world_;
  int rank_ = 0;
  std::vector<std::uint64_t> sent_;  // messages, by receiver
  std::vector<ReceiveRequest*> receives_;
  std::vector<Envelope> calls_;  // of compare_calls()
  std::unique_ptr<thread::Meetings> meetings_;
  std::uint32_t seen_ = 0;  // rings of the bell before the last look
};
static_assert(ArenaTransport<ThreadTransport> && CarriesProbes<ThreadTransport>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/thread/source/peers.hpp>
#include <pdp/comm/thread/source/probes.hpp>
#include <pdp/comm/thread/source/transport.hpp>
#endif
