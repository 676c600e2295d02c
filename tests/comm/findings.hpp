// Collects a rank's failed expectations as text, since Catch2's assertions must not be used in the threads of ranks.
#pragma once

#include <pdp/testing/ranks.hpp>

#include <string>
#include <vector>

#include "catch.hpp"

class Findings {
 public:
  void expect(bool holds, const std::string& what) {
    if (!holds) found_.push_back(what);
  }
  [[nodiscard]] const std::vector<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> found_;
};

/// Runs f(world, findings) on all ranks. Fails the test for each finding of each rank.
template <class Comm, class F>
void check_on_ranks(int size, F&& f) {
  const auto found = pdp::testing::ranks<Comm>(size, [&f](Comm& world) {
    Findings findings;
    f(world, findings);
    return findings.found();
  });
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    for (const std::string& each : found[rank]) FAIL_CHECK("rank " << rank << " of " << size << ": " << each);
}

/// Starts messages in opposite directions. If the backend runs its messages in order, grouped() starts them together to avoid a deadlock.
template <class Comm, class F>
void pass_each_other(Comm& group, F&& start) {
  if constexpr (pdp::comm::QueuesMessages<Comm>)
    group.grouped(start);
  else
    start();
}
