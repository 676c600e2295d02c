// A minimal model of the concept comm::Communicator: one rank, whose calls are copies.
#pragma once

#include <pdp/comm/region.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace archetype {

/// A Work that is complete at once.
class Done {
 public:
  Done() = default;
  Done(Done&&) = default;
  Done& operator=(Done&&) = default;
  void wait() {}
  [[nodiscard]] bool done() { return true; }
  [[nodiscard]] bool pending() const { return false; }
};

struct Ranks {
  using Work = Done;
  [[nodiscard]] int rank() const { return 0; }
  [[nodiscard]] int size() const { return 1; }
};

struct Messages : Ranks {
  Done send_async(auto&& /*values*/, int /*peer*/, int /*tag*/) { return {}; }
  Done recv_async(auto&& /*values*/, int /*peer*/, int /*tag*/) { return {}; }
};

struct Verbs : Messages {
  void barrier() {}
  void broadcast(auto&& /*values*/, int /*root*/) {}
  Done broadcast_async(auto&& /*values*/, int /*root*/) { return {}; }
  void all_reduce(auto&& /*values*/, auto /*operation*/) {}
  Done all_reduce_async(auto&& /*values*/, auto /*operation*/) { return {}; }
  void all_gather(auto&& shard, auto&& whole) { std::ranges::copy(shard, whole.begin()); }
  Done all_gather_async(auto&& shard, auto&& whole) {
    if (shard.data() != whole.data()) std::ranges::copy(shard, whole.begin());
    return {};
  }
  Done reduce_scatter_async(auto&& whole, auto&& shard, auto /*operation*/) {
    if (shard.data() != whole.data()) std::ranges::copy(whole, shard.begin());
    return {};
  }
  void gather(auto&& shard, auto&& whole, std::span<const std::size_t> /*counts*/, int /*root*/) {
    std::ranges::copy(shard, whole.begin());
  }
  template <class T>
  pdp::comm::Registered<T> allocate(std::size_t count) {
    return pdp::comm::Registered<T>{pdp::comm::Region::ordinary(count * sizeof(T))};
  }
  void progress() {}
};

struct Communicator : Verbs {
  [[nodiscard]] Communicator split(int /*color*/, int /*key*/) { return {}; }
};

}  // namespace archetype
