#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <pdp/comm/message/algorithm/binomial.hpp>
#include <pdp/comm/message/algorithm/dissemination.hpp>
#include <pdp/comm/message/algorithm/select.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::algorithm {

/// A group over several hosts, as seen from one of its ranks. All ranks are ranks in the group, not in the world.
struct Levels {
  std::vector<int> host_of;  // host of every rank
  std::vector<int> leaders;  // the first rank on each host
  std::vector<int> local;    // the ranks on this host, in order
  std::vector<int> acting;   // leader of each host in the current call; if the call has a root, the root leads its host

  /// `host_of`: the host of every rank. Hosts are numbered from 0, in the order of their first ranks. `rank`: this rank.
  static constexpr Levels of(std::vector<int> host_of, int rank) {
    Levels levels;
    for (std::size_t each = 0; each < host_of.size(); ++each) {
      const auto host = as_size(host_of[each]);
      if (host >= levels.leaders.size()) levels.leaders.push_back(as_int(each));
      if (host_of[each] == host_of[as_size(rank)]) levels.local.push_back(as_int(each));
    }
    levels.acting = levels.leaders;
    levels.host_of = std::move(host_of);
    return levels;
  }
};

/// Collectives of a group over several hosts. The ranks of each host use a shared-memory rendezvous. One rank of each host, its leader,
/// exchanges messages with the leaders of the other hosts. Results go to the other ranks of the host along a tree.
class TwoLevel {
 public:
  constexpr TwoLevel(Schedule& schedule, Levels& levels, int rank)
      : schedule_{schedule}, levels_{levels}, rank_{rank}, host_{levels.host_of[as_size(rank)]} {}

  /// Returns whether the verb has a two-level schedule. For other verbs, all ranks exchange messages directly.
  static constexpr bool takes(Verb verb) {
    return verb == Verb::barrier || verb == Verb::all_reduce || verb == Verb::broadcast || verb == Verb::reduce;
  }

  /// Clears the schedule and writes the steps of this rank. `root`: negative if the verb has none.
  constexpr void select(Verb verb, int root, std::size_t count, std::size_t element_bytes) {
    const int hosts = as_int(levels_.leaders.size());
    const int home = root < 0 ? -1 : levels_.host_of[as_size(root)];
    schedule_.clear();
    levels_.acting = levels_.leaders;
    if (root >= 0) levels_.acting[as_size(home)] = root;
    const bool leads = leader(host_) == rank_;
    switch (verb) {
      case Verb::barrier:
        meet(Step::Buffer::output, 0);
        if (leads) dissemination_barrier(among(levels_.acting), host_, hosts);
        break;
      case Verb::all_reduce:
        meet(Step::Buffer::output, count);
        if (leads) all_reduce(among(levels_.acting), choose(hosts, count * element_bytes), host_, hosts, count);
        break;
      case Verb::broadcast:
        if (leads) binomial_broadcast(among(levels_.acting), host_, hosts, home, count);
        break;
      default:
        return reduce(root, home, count);
    }
    schedule_.next_round();
    const int members = as_int(levels_.local.size());
    binomial_broadcast(among(levels_.local), place(rank_), members, place(leader(host_)), count);
  }

 private:
  /// Adds a shared-memory rendezvous of this host's ranks, unless this rank is alone on its host. Begins a new round.
  constexpr void meet(Step::Buffer buffer, std::size_t count) {
    if (levels_.local.size() > 1) schedule_.together(buffer, count);
    schedule_.next_round();
  }
  /// Reduces in scratch memory, because only the root's output may change.
  constexpr void reduce(int root, int home, std::size_t count) {
    using enum Step::Buffer;
    schedule_.copy(scratch, 0, output, 0, count);
    meet(scratch, count);
    if (leader(host_) != rank_) return;
    if (rank_ != root) return schedule_.send(root, scratch, 0, count);
    for (int host = 0; host < as_int(levels_.leaders.size()); ++host) {
      if (host == home) continue;
      schedule_.combine(leader(host), scratch, 0, count);
      schedule_.next_round();
    }
    schedule_.copy(output, 0, scratch, 0, count);
  }

  /// Makes the peers of later steps indices into `ranks`.
  constexpr Schedule& among(const std::vector<int>& ranks) {
    schedule_.number(ranks);
    return schedule_;
  }
  [[nodiscard]] constexpr int leader(int host) const { return levels_.acting[as_size(host)]; }
  [[nodiscard]] constexpr int place(int local_rank) const {
    int i = 0;
    while (levels_.local[as_size(i)] != local_rank) ++i;
    return i;
  }

  Schedule& schedule_;
  Levels& levels_;
  int rank_, host_;
};

}  // namespace pdp::comm::algorithm
