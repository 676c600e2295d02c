#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>

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
    is_exchanged_ = false;
  }
  [[nodiscard]] bool is_known() const { return global_ > 0; }
  [[nodiscard]] Index global() const { return global_; }
  /// Returns the split of the rows over ranks, as far as all ranks know it (see RecordedSplits).
  [[nodiscard]] std::span<const Index> split() const { return split_.empty() ? std::span{&global_, 1} : std::span<const Index>{split_}; }

  /// Returns the number of the first row of share `share` of `shares` among the rows of all shares. 0 if the split is not known.
  [[nodiscard]] Index first_row(int share, int shares) const {
    if (split_.empty()) return global_ * share / shares;
    Index before = 0;
    if (is_exchanged_) {
      for (std::size_t at = 0; at < split_.size(); at += numbers_of_rank)
        if (split_[at + 2] < share) before += split_[at + 1];
    } else {
      for (int other = 0; other < share; ++other) before += split_[as_size(other)];
    }
    return before;
  }

  /// Exchanges with all ranks how many rows each has, how many of them it counts, and its share. Waits for the result. Throws ConfigError
  /// if no rank has rows. `calls`: the HostCalls of the world.
  template <class Calls>
  void ask(Calls calls, int ranks, Index rows, int share) {
    const std::array<Index, numbers_of_rank> own{rows, own_, share};
    split_.resize(own.size() * as_size(ranks));
    is_exchanged_ = true;
    calls.all_gather(std::span<const Index>{own}, std::span{split_});
    for (std::size_t at = 1; at < split_.size(); at += own.size()) global_ += split_[at];
    check();
  }

  /// start() and wait() sum the counted rows of all ranks while this rank computes. wait() throws ConfigError if no rank has rows.
  void start(C& group);
  void wait();

 private:
  static constexpr std::size_t numbers_of_rank = 3;
  void check() const;

  Index own_ = 0, global_ = 0;
  std::vector<Index> split_;  // rows of each share; or each rank's numbers, if exchanged; empty if shares follow from global_
  bool is_exchanged_ = false;
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
