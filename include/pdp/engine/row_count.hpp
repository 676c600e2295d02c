#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::engine {

/// The number of rows of a step over all ranks. The caller passes it, or the ranks count their rows together.
template <comm::Communicator C>
class RowCount {
 public:
  /// `own`: rows that this rank counts. `global`: rows over all ranks; 0: not known.
  void begin(Index own, Index global) {
    own_ = own;
    global_ = global;
    counted_.clear();
  }
  [[nodiscard]] bool is_known() const { return global_ > 0; }
  [[nodiscard]] Index global() const { return global_; }
  /// Returns the split of the rows over ranks, as far as all ranks know it (see RecordedSplits).
  [[nodiscard]] std::span<const Index> split() const {
    return counted_.empty() ? std::span{&global_, 1} : std::span<const Index>{counted_};
  }

  /// Exchanges with all ranks how many rows each has, and how many of them it counts. Waits for the result. Throws ConfigError if no rank
  /// has rows. `calls`: the HostCalls of the world.
  template <class Calls>
  void ask(Calls calls, int ranks, Index rows) {
    const std::array<Index, 2> own{rows, own_};
    counted_.resize(own.size() * as_size(ranks));
    calls.all_gather(std::span<const Index>{own}, std::span{counted_});
    for (std::size_t at = 1; at < counted_.size(); at += own.size()) global_ += counted_[at];
    check();
  }

  /// start() and wait() sum the counted rows of all ranks while this rank computes. wait() throws ConfigError if no rank has rows.
  void start(C& group);
  void wait();

 private:
  void check() const;

  Index own_ = 0, global_ = 0;
  std::vector<Index> counted_;  // for each rank, its rows and its counted rows; empty unless exchanged
  typename C::Work counting_;   // last, so that it is destroyed before the sum that it borrows
};

template <comm::Communicator C>
void RowCount<C>::start(C& group) {
  global_ = own_;
  counting_ = group.all_reduce_async(std::span{&global_, 1}, comm::Sum{});
}

template <comm::Communicator C>
void RowCount<C>::wait() {
  counting_.wait();
  check();
}

template <comm::Communicator C>
void RowCount<C>::check() const {
  if (global_ == 0) throw ConfigError{"a step had no rows on any rank; end the epoch when the data ends"};
}

}  // namespace pdp::engine
