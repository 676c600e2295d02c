// Hosts are made believe: ranks that are on "another host" have only TCP between them.
#pragma once

#include <pdp/comm/hierarchical.hpp>

#include <utility>

enum class Layout { one_host, pairs, interleaved, last_alone, all_alone };

/// The default communicator, as if its ranks were on hosts of a layout. One type for all layouts, as each would be compiled for itself.
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

  static inline Layout layout = Layout::one_host;  // of the worlds that are made from now on
};
