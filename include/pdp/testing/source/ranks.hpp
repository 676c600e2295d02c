#pragma once

/// Definitions for pdp/testing/ranks.hpp; see pdp/core/separate_compilation.hpp.

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/stack.hpp>
#include <pdp/testing/ranks.hpp>

namespace pdp::testing {

PDP_INLINE std::string Thrown::what() const {
  if (!thrown_) return "nothing was thrown";
  try {
    rethrow();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an object that is not a std::exception";
  }
}

PDP_INLINE int Thrown::lost_rank() const {
  if (!thrown_) return -1;
  try {
    rethrow();
  } catch (const PeerLost& lost) {
    return lost.rank();
  } catch (...) {
    return -1;
  }
}

PDP_INLINE void Thrown::rethrow() const { std::rethrow_exception(thrown_); }

namespace detail {

PDP_INLINE std::string Errors::caught(int rank) {
  const Thrown thrown{std::current_exception()};
  const std::lock_guard lock{mutex_};
  by_rank_[as_size(rank)] = thrown;
  order_.push_back(rank);
  return text("rank ", rank, " failed: ", thrown.what());
}

PDP_INLINE void Errors::rethrow_cause() const {
  for (const auto is_cause : {+[](const Thrown& thrown) { return !thrown.is<CommunicationError>(); },
                              +[](const Thrown& thrown) { return !thrown.is<PeerLost>(); }, +[](const Thrown&) { return true; }})
    for (const int rank : order_)
      if (const Thrown& thrown = by_rank_[as_size(rank)]; is_cause(thrown)) thrown.rethrow();
}

PDP_INLINE void run_on_threads(int size, Errors& errors, const std::function<void(int rank)>& run) {
  launch::widen_thread_stacks();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run(rank);
      } catch (...) {
        errors.caught(rank);
      }
    });
  }
}

}  // namespace detail

}  // namespace pdp::testing
