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

/// A transport of messages between threads of one process. A receiver takes the values straight from the memory of the sender, so a send is
/// done when it has been received. All-reduce and barrier use a shared-memory rendezvous instead (see together::Meeting).
class ThreadTransport {
 public:
  /// Creates the transports of all ranks of a new world. Move each to a thread of its own.
  static std::vector<ThreadTransport> world(int size);

  ThreadTransport(ThreadTransport&&) noexcept;
  ThreadTransport& operator=(ThreadTransport&& other) noexcept;
  ~ThreadTransport();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const;

  void post(SendRequest& send);
  void post(ReceiveRequest& receive);
  void post(GroupRequest& request);

  // Required by ArenaTransport.
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

  static constexpr Duration patience = std::chrono::milliseconds{100};  // how long a rank sleeps before compare_calls()

  ThreadTransport(std::shared_ptr<World> world, int rank);

  [[nodiscard]] Mailbox& mailbox(int rank) const;

  /// Advances the collectives that need no messages. When the world has failed, each rank withdraws its values, and waits until no other
  /// rank is accessing them. So this rank first announces that it may access values, and then checks whether the world has failed.
  bool meet();
  /// Takes the messages that have arrived for this rank and are expected.
  bool receive();

  /// Returns a mismatch if another rank has sent a message of an earlier collective of the same group, which this rank has not received. It
  /// explains more than a mismatch with `call` itself.
  [[nodiscard]] std::optional<Failure> find_earlier(const Envelope& call);
  /// Ends the world if this rank waits for a rank that has left, which can neither send nor take messages any more.
  void check_peers();
  /// Returns the envelope of the first message from one rank in the mailbox of another.
  [[nodiscard]] std::optional<Envelope> has_message(int of, int from) const;
  /// Publishes the calls of this rank, and compares them with those that the others have published. A rank does so when it has slept for
  /// `patience`. If calls differ, all ranks may wait for messages that are never sent or never taken. Then no message reaches a receive
  /// that would show the mismatch.
  void compare_calls();

  [[noreturn]] void end(Failure failure);

  /// Withdraws the requests of this rank. No other rank accesses them afterwards.
  void withdraw();

  std::shared_ptr<World> world_;
  int rank_ = 0;
  std::vector<std::uint64_t> sent_;  // number of messages sent, by receiver
  std::vector<ReceiveRequest*> receives_;
  std::vector<Envelope> calls_;  // scratch memory of compare_calls()
  std::unique_ptr<thread::Meetings> meetings_;
  std::uint32_t seen_ = 0;  // rings of the bell at the beginning of the last progress()
};
static_assert(ArenaTransport<ThreadTransport> && CarriesProbes<ThreadTransport>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/thread/source/peers.hpp>
#include <pdp/comm/thread/source/probes.hpp>
#include <pdp/comm/thread/source/transport.hpp>
#endif
