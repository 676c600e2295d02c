// Simulates several hosts on one machine: ranks on different simulated hosts are connected by TCP only.
#pragma once

#include <pdp/comm/hierarchical.hpp>

#include <utility>

enum class Layout { one_host, pairs, interleaved, last_alone, all_alone };

/// The default communicator with its ranks on the simulated hosts of a layout. One type serves all layouts, which saves compile time.
class OnHosts : public pdp::comm::Default {
 public:
  OnHosts(pdp::comm::Default&& group) : pdp::comm::Default{std::move(group)} {}
  [[nodiscard]] OnHosts split(int color, int key) { return pdp::comm::Default::split(color, key); }

  static int host_of(int rank, int size) {
    switch (layout) {
      case Layout::one_host:
        return 0;
      case Layout::pairs:
        return rank / 2;
      case Layout::interleaved:
        return rank % 2;
      case Layout::last_alone:
        return rank == size - 1 ? 1 : 0;
      case Layout::all_alone:
        return rank;
    }
    return 0;
  }
  static OnHosts connect(pdp::comm::StoreView store, int rank, int size, pdp::comm::TimePoint deadline) {
    return pdp::comm::Default::connect(store, rank, size, deadline, pdp::text("host ", host_of(rank, size)));
  }

  static inline Layout layout = Layout::one_host;  // of worlds that connect from now on
};
