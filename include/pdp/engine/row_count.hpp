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
  /// `own`: rows that this rank counts. `global`: rows over all ranks; 0: not known. `shares`: rows of each share, if they do not follow
  /// from `global`, else empty.
  void begin(Index own, Index global, std::span<const Index> shares = {}) {
    own_ = own;
    global_ = global;
    split_.assign(shares.begin(), shares.end());
  }
  [[nodiscard]] bool is_known() const { return global_ > 0; }
  [[nodiscard]] Index global() const { return global_; }
  /// Returns the split of the rows over ranks, as far as all ranks know it (see RecordedSplits).
  [[nodiscard]] std::span<const Index> split() const { return split_.empty() ? std::span{&global_, 1} : std::span<const Index>{split_}; }

  /// Exchanges with all ranks how many rows each has, and how many of them it counts. Waits for the result. Throws ConfigError if no rank
  /// has rows. `calls`: the HostCalls of the world.
  template <class Calls>
  void ask(Calls calls, int ranks, Index rows) {
    const std::array<Index, 2> own{rows, own_};
    split_.resize(own.size() * as_size(ranks));
    calls.all_gather(std::span<const Index>{own}, std::span{split_});
    for (std::size_t at = 1; at < split_.size(); at += own.size()) global_ += split_[at];
    check();
  }

  /// start() and wait() sum the counted rows of all ranks while this rank computes. wait() throws ConfigError if no rank has rows.
  void start(C& group);
  void wait();

 private:
  void check() const;

  Index own_ = 0, global_ = 0;
  std::vector<Index> split_;   // rows of each share; or, if exchanged, each rank's rows and counted rows; empty if both follow from global_
  typename C::Work counting_;  // last, so that it is destroyed before the sum that it borrows
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
