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

/// One rank of a group, and its calls with the types of their elements erased: all of a communicator that depends on the transport only.
/// Sub-groups share the transport and live on their own.
///
/// A source with a transport of its own includes pdp/comm/message/source/member.hpp, too, where the members are defined.
template <Transport T>
class Member {
  using Queue = CallQueue<T>;
  using Group = CallGroup<T>;

 public:
  static constexpr bool fails_fast = true;
  /// Ranks that share memory add in their order.
  static constexpr bool rank_ordered = GroupTransport<T> && !HostTransport<T>;

  using Work = WorkHandle<Group, Call>;

  /// The world: all ranks of the transport. `deadline`: how long a call may wait.
  explicit Member(T transport, Duration deadline = default_deadline);
  Member(Member&&) noexcept;
  Member& operator=(Member&&) noexcept;
  ~Member();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return as_int(group_->ranks.size()); }
  [[nodiscard]] Duration deadline() const;
  void deadline(Duration duration);
  /// For calibration: this group's all-reduces by messages are carried out so, whatever the table says. The same on all ranks.
  void always(algorithm::AllReduce algorithm) { always_ = algorithm; }
  void heartbeat(Duration duration) requires KeepsHeartbeat<T>;
  void progress();
  void abort(const std::string& reason);

  Work start(const Request& request);

  // What a Work does with its call.
  static bool is_done(Group& group, Call& call);
  static void finish(Group& group, Call& call);
  static void drop(Group& group, Call& call) noexcept;

  /// The group of those ranks that give the same colour, ordered by key and then by rank.
  [[nodiscard]] Member split(int color, int key);

  /// Whether all ranks of the group see the memory that allocate() makes.
  [[nodiscard]] bool shares_memory() const { return ArenaTransport<T> && meets_; }
  /// Memory that all ranks of the group see, so that collectives work where the values lie.
  Region allocate(std::size_t bytes) requires ArenaTransport<T>;

 private:
  Member(std::shared_ptr<Queue> queue, std::unique_ptr<Group> group, int rank);

  /// Memory of every rank of the group, each of as many bytes.
  /// `prepare`: what is to be done with each as soon as it is there.
  template <class Prepare>
  auto share(std::size_t bytes, const Prepare& prepare) requires GroupTransport<T>;
  /// What another rank of the group shares. Throws PeerLost where that rank has ended.
  auto open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T>;
  template <class E>
  void gather_from_all(const E& mine, std::vector<E>& all);
  [[nodiscard]] GroupPlace place() const { return {group_->channel, group_->ranks, rank_}; }
  /// Prepares what the ranks of a new group need to meet.
  void prepare_to_meet() requires GroupTransport<T>;
  void select(Call& call, const algorithm::Extent& extent, std::size_t count);

  Call& begin(const Request& request, const CheckedRequest& checked);
  Call& begin_message(const Request& request, const CheckedRequest& checked);
  static std::uint64_t channel_of(std::uint64_t parent, std::uint64_t call, int color);

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Group> group_;
  int rank_ = 0;
  std::optional<algorithm::AllReduce> always_;
  bool meets_ = false;  // all ranks of the group can meet
  // Of a group over several hosts, some of which have several of its ranks; else null.
  std::unique_ptr<algorithm::Levels> levels_;
  std::unique_ptr<Member> host_part_;  // its ranks of this host
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/message/source/member.hpp>
#endif
