#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::engine {

/// How many rows a step has over all ranks: the caller says so, or the ranks count them together.
template <comm::Communicator C>
class RowCount {
 public:
  /// `own`: rows that this rank counts; `global`: over all ranks, 0 where the caller does not know.
  void begin(Index own, Index global) {
    own_ = own;
    global_ = global;
    counted_.clear();
  }
  [[nodiscard]] bool is_known() const { return global_ > 0; }
  [[nodiscard]] Index global() const { return global_; }
  /// How the rows are split over ranks, as all of them know it.
  [[nodiscard]] std::span<const Index> split() const {
    return counted_.empty() ? std::span{&global_, 1} : std::span<const Index>{counted_};
  }

  /// Asks all ranks at once how many rows they have, and how many of them they count. `calls`: of the world, with values of the host.
  template <class Calls>
  void ask(Calls calls, int ranks, Index rows) {
    const std::array<Index, 2> own{rows, own_};
    counted_.resize(own.size() * as_size(ranks));
    calls.all_gather(std::span<const Index>{own}, std::span{counted_});
    for (std::size_t at = 1; at < counted_.size(); at += own.size()) global_ += counted_[at];
    check();
  }

  /// The same as a call that moves while the rank computes; wait() ends it.
  void start(C& group);
  void wait();

 private:
  void check() const;

  Index own_ = 0, global_ = 0;
  std::vector<Index> counted_;  // of each rank, the rows and those that it counts, where it was asked
  typename C::Work counting_;   // last, as it borrows
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
  if (global_ == 0) throw ConfigError{"a step was made without a single row on any rank; end the epoch where the data ends"};
}

}  // namespace pdp::engine
