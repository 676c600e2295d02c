#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/work_handle.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/message/call_group.hpp>
#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

struct CheckedRequest;
namespace algorithm {
enum class AllReduce : unsigned char;
struct Extent;
struct Levels;
}  // namespace algorithm

/// One rank of a group, with calls whose element types are erased: the part of a communicator that depends on the transport only.
/// Sub-groups share the transport and may outlive this group.
///
/// A source that instantiates Member with its own transport also includes pdp/comm/message/source/member.hpp, which defines the members.
template <Transport T>
class Member {
  using Queue = CallQueue<T>;
  using Group = CallGroup<T>;

 public:
  static constexpr bool fails_fast = true;
  /// Whether reductions add in the order of ranks, as they do if all ranks share memory.
  static constexpr bool rank_ordered = GroupTransport<T> && !HostTransport<T>;

  using Work = WorkHandle<Group, Call>;

  /// Makes the group of all ranks of the transport (the world). `deadline`: how long a call may wait.
  explicit Member(T transport, Duration deadline = default_deadline);
  Member(Member&&) noexcept;
  Member& operator=(Member&&) noexcept;
  ~Member();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return as_int(group_->ranks.size()); }
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// For calibration: uses this algorithm for the group's all-reduces by messages, whatever the table says. It must be the same on all
  /// ranks. It has no effect if some ranks of the group share memory.
  void always(algorithm::AllReduce algorithm) { always_ = algorithm; }
  void heartbeat(Duration duration) requires KeepsHeartbeat<T>;
  void progress();
  void wait_for_progress(TimePoint until);
  void abort(const std::string& reason);

  Work start(const Request& request);

  // Required by WorkHandle.
  static bool is_done(Group& group, Call& call);
  static void finish(Group& group, Call& call);
  static void drop(Group& group, Call& call) noexcept;

  /// Returns the group of the ranks that pass the same color, ordered by key and then by rank.
  [[nodiscard]] Member split(int color, int key);

  /// Returns whether all ranks of the group can access the memory that allocate() makes.
  [[nodiscard]] bool shares_memory() const { return ArenaTransport<T> && meets_; }
  /// Returns zeroed memory for the values of calls. Ranks that share memory reduce values there in place; without such ranks it is ordinary
  /// memory. Every rank of the group must pass the same size. Throws ConfigError if sizes differ between ranks that share memory.
  Region allocate(std::size_t bytes) requires ArenaTransport<T>;

 private:
  Member(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank);

  /// Makes `bytes` of memory on every rank of the group and opens that of all others. Returns the memories in the order of ranks.
  /// `prepare`: called with each memory as soon as it is open.
  template <class Prepare>
  auto share(std::size_t bytes, const Prepare& prepare) requires GroupTransport<T>;
  /// Opens the memory that another rank of the group shares. Throws PeerLost if that rank is found to have ended, else ConfigError if the
  /// memory cannot be opened.
  auto open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T>;
  template <class E>
  void gather_from_all(const E& mine, std::vector<E>& all);
  [[nodiscard]] GroupPlace place() const { return {group_->channel, group_->ranks, rank_}; }
  /// Prepares a new group for shared-memory rendezvous.
  void prepare_to_meet() requires GroupTransport<T>;
  void select(Call& call, const algorithm::Extent& extent, std::size_t count);

  Call& begin(const Request& request, const CheckedRequest& checked);
  Call& begin_message(const Request& request, const CheckedRequest& checked);
  static std::uint64_t channel_of(std::uint64_t parent, std::uint64_t call, int color);

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Group> group_;
  int rank_ = 0;
  std::optional<algorithm::AllReduce> always_;
  bool meets_ = false;  // all ranks of the group share memory
  // Set if the group spans several hosts and some of these have several of its ranks; else null.
  std::unique_ptr<algorithm::Levels> levels_;
  std::unique_ptr<Member> host_part_;  // the group's ranks on this host
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/message/source/member.hpp>
#endif
