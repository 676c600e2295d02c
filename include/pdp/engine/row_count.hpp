#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/batch.hpp>

namespace pdp::engine {

/// The number of rows of a step over all ranks, and the sum of their weights. If all rows count, and weigh the same, the caller may pass
/// the number. Otherwise the ranks count their rows together.
template <comm::Communicator C>
class RowCount {
 public:
  /// `global`: rows over all ranks, those that do not count included; 0: not known. `shares`: rows of each share, if they do not follow
  /// from `global`, else empty. `ranks`: of the world.
  void begin(const OwnRows& own, Index global, std::span<const Index> shares = {}, int ranks = 0) {
    own_ = own;
    global_ = global;
    split_.assign(shares.begin(), shares.end());
    is_exchanged_ = false;
    is_known_ = global > 0 && !own.look_at_targets();
    totals_ = {is_known_ ? global * own.of_sample : 0};
    if (!own.look_at_targets() || ranks != 1 || own.all == 0) return;
    is_known_ = true;  // there are no other ranks
    global_ = own.all;
    totals_ = own.adds;
  }
  [[nodiscard]] bool is_known() const { return is_known_; }
  /// Returns the numbers of rows over all ranks; 0 if they are not known yet.
  [[nodiscard]] RowTotals global() const { return is_known_ ? totals_ : RowTotals{}; }
  /// Returns the split of the rows over ranks, as far as all ranks know it (see RecordedSplits).
  [[nodiscard]] std::span<const Index> split() const { return split_.empty() ? std::span{&global_, 1} : std::span<const Index>{split_}; }

  /// Returns the number of the first row of share `share` of `shares` among the rows of all shares. 0 if the split is not known.
  [[nodiscard]] Index first_row(int share, int shares) const {
    if (is_exchanged_) return first_row_;
    if (split_.empty()) return global_ * share / shares;
    Index before = 0;
    for (int other = 0; other < share; ++other) before += split_[as_size(other)];
    return before;
  }

  /// Exchanges with all ranks how many rows each has, how many of them it counts, and its share. Waits for the result. Throws ConfigError
  /// if no rank has rows. `calls`: the HostCalls of the world.
  template <class Calls>
  void ask(Calls calls, int ranks, int share) {
    const std::array<Index, 5> own{own_.all, share, own_.adds.counted, own_.adds.ignored, std::bit_cast<Index>(own_.adds.weight)};
    const std::size_t numbers = own_.weighs ? 5 : own_.may_ignore ? 4 : 3;
    all_.resize(numbers * as_size(ranks));
    calls.all_gather(std::span<const Index>{own}.first(numbers), std::span{all_});
    first_row_ = 0;
    for (std::size_t at = 0; at < all_.size(); at += numbers) {
      const std::span<Index> sent = std::span{all_}.subspan(at, numbers);
      const RowTotals rank{sent[2], numbers > 3 ? sent[3] : 0, numbers > 4 ? std::bit_cast<double>(sent[4]) : 0};
      if (numbers > 3) std::ranges::fill(sent.subspan(2), 0);  // recorded work does not depend on them
      totals_ = {totals_.counted + rank.counted, totals_.ignored + rank.ignored, totals_.weight + rank.weight};
      if (sent[1] < share) first_row_ += rank.all() / own_.of_sample;
    }
    is_exchanged_ = global_ == 0;
    if (is_exchanged_) split_ = all_;
    finish();
  }

  /// start() and wait() sum the rows of all ranks while this rank computes. wait() throws ConfigError if no rank has rows.
  void start(C& group);
  void wait();

 private:
  void finish();

  OwnRows own_;
  Index global_ = 0;              // as the caller gave it
  RowTotals totals_{};            // over all ranks
  std::array<double, 3> sums_{};  // the same on the way, exact for numbers of rows
  std::vector<Index> split_;      // rows of each share, or all_; empty if they follow from global_
  std::vector<Index> all_;        // the numbers of each rank
  Index first_row_ = 0;           // of this rank's share, if the ranks have exchanged their numbers of rows
  bool is_known_ = false, is_exchanged_ = false;
  typename C::Work counting_;  // last, so that it is destroyed before the sums that it borrows
};

template <comm::Communicator C>
void RowCount<C>::start(C& group) {
  sums_ = {as_double(own_.adds.counted), as_double(own_.adds.ignored), own_.adds.weight};
  counting_ = group.all_reduce_async(std::span<double>{sums_}.first(own_.weighs ? 3 : own_.may_ignore ? 2 : 1), comm::Sum{});
}

template <comm::Communicator C>
void RowCount<C>::wait() {
  counting_.wait();
  totals_ = {static_cast<Index>(sums_[0]), static_cast<Index>(sums_[1]), sums_[2]};
  finish();
}

template <comm::Communicator C>
void RowCount<C>::finish() {
  if (totals_.all() == 0) throw ConfigError{"a step had no rows on any rank; end the epoch when the data ends"};
  is_known_ = true;
}

}  // namespace pdp::engine
