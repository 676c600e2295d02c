#pragma once

#include <sched.h>

#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/launch/connector.hpp>
#include <pdp/launch/process/carry_out.hpp>
#include <pdp/launch/process/cores.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/process/stack.hpp>
#include <pdp/launch/store/in_process_store.hpp>

/// Ranks that are threads of one process.
namespace pdp::launch::detail {

/// A warning for ranks that are threads. Each thread starts on cores of its own, but OpenMP binds it again when it first computes in
/// parallel.
inline constexpr const char* threads_are_bound =
    "OpenMP binds the threads of every rank to the same cores, beginning with the first (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY or "
    "KMP_AFFINITY). Ranks that are threads may therefore share cores while others are free, and run slower. Unset these variables, or use "
    "--ranks, whose processes get cores of their own";

/// A rank that is a thread and not yet connected to the others. Its conversion to Comm connects it.
template <class Comm>
struct Seat {
  InProcessStore& store;
  int rank, size;
  comm::TimePoint deadline;
  explicit operator Comm() const {
    try {
      return Comm::connect(store, rank, size, deadline);
    } catch (...) {
      store.fail(Problem::failure_at_start(rank));
      throw;
    }
  }
};

/// Runs one rank for each element of `all`, each on a thread of its own. Returns the exit code.
///
/// Each thread converts its element, a Seat or a communicator, to World and calls the function with it. World is comm::Thread, an Any that
/// holds one, or a communicator of devices. `deadline`: of calls; nothing: the communicator's default.
template <class World, class AnySeat>
int run_threads(std::vector<AnySeat> all, const std::optional<comm::Duration>& deadline, const std::function<int(World&)>& function) {
  const auto count = as_int(all.size());
  std::mutex mutex;
  std::optional<std::pair<int, Problem>> root, consequence;
  int first_code = 0;
  const Tell tell = [&](const Problem& problem, int rank) {
    const std::lock_guard lock{mutex};
    auto& first = problem.kind == Problem::Kind::consequence ? consequence : root;
    if (!first) first.emplace(rank, problem);
  };
  widen_thread_stacks();
  {
    const std::vector<Cores> places = openmp_places();  // the threads read this
    std::vector<std::jthread> threads;
    if (count > 1 && places.size() > 1) Report::print({Problem::Kind::usage, threads_are_bound}, -1);
    // Destroyed before `threads` are joined. If a thread cannot be started, the other ranks then notice that its rank is gone.
    std::vector<AnySeat> seats = std::move(all);
    while (!seats.empty()) {
      threads.emplace_back([&, own = as_int(seats.size()) - 1, seat = std::move(seats.back())]() mutable {
        if (const auto cores = share_of(places, own, count)) ::sched_setaffinity(0, sizeof *cores, &*cores);
        int code = 0;
        try {
          auto world = static_cast<World>(std::move(seat));
          set_deadline(world, deadline);
          code = carry_out(std::move(world), function, tell);
        } catch (...) {  // the rank could not connect
          const Problem problem = Problem::current();
          tell(problem, own);
          code = problem.exit_code();
        }
        const std::lock_guard lock{mutex};
        if (first_code == 0) first_code = code;
      });
      seats.pop_back();
    }
  }
  if (!root) root = std::move(consequence);
  if (!root) return first_code;
  Report::print(root->second, count > 1 ? root->first : -1);
  return root->second.exit_code();
}

}  // namespace pdp::launch::detail
