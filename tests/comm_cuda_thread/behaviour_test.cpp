// Runs the tests of all backends on comm::CudaThread, on the stand-in for CUDA or on real GPUs. Ranks share GPUs if there are fewer GPUs
// than ranks.
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/testing/values.hpp>

#include <cmath>
#include <iostream>

#include "comm/arguments.hpp"
#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/failures.hpp"
#include "comm/staged.hpp"

namespace comm = pdp::comm;

namespace {

using Staged = StagedOver<comm::CudaThread>;
static_assert(comm::Communicator<Staged> && comm::HasReduceScatter<Staged>);

/// Returns whether there is a GPU. If not, prints the line by which CTest recognises a skipped test.
bool has_gpu() {
  int gpus = 0;
  const bool has = cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
  if (!has) std::cout << "skipped: there is no GPU\n";
  return has;
}

/// As check_on_ranks, if there is a GPU.
template <class F>
void check_on_gpus(int size, F&& f) {
  if (has_gpu()) check_on_ranks<Staged>(size, f);
}

}  // namespace

TEST_CASE("CudaThread: every verb gives the serial result", "[comm][cuda_thread]") {
  const int size = GENERATE(1, 2, 3, 4);
  SECTION("for integers, floats and bytes") {
    check_on_gpus(size, [](Staged& world, Findings& findings) {
      conformance::every_verb<float>(world, findings);
      conformance::every_verb<double>(world, findings);
      conformance::every_verb<std::int32_t>(world, findings);
      conformance::every_verb<std::int64_t>(world, findings);
      conformance::every_verb<std::byte>(world, findings);
    });
  }
  SECTION("for large values, uneven shards, 16-bit floats and bitwise operations") {
    check_on_gpus(size, [](Staged& world, Findings& findings) {
      conformance::switch_points(world, findings);
      for (const std::size_t base : {std::size_t{0}, std::size_t{500}, std::size_t{9000}}) {
        conformance::uneven_shards<float>(world, findings, base);
        conformance::uneven_shards<std::int64_t>(world, findings, base);
      }
      conformance::sums_of<pdp::Float16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
      conformance::sums_of<pdp::BFloat16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
      conformance::sums_of<std::int8_t, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
      conformance::sums_of<std::int32_t, comm::BitAnd, comm::BitOr>(world, findings);
    });
  }
}

TEST_CASE("CudaThread: every verb gives the serial result if several ranks share a GPU", "[comm][cuda_thread]") {
  check_on_gpus(17, [](Staged& world, Findings& findings) {
    conformance::reductions<std::int32_t>(world, findings, 37, comm::Sum{});
    conformance::moves<float>(world, findings, 37);
  });
}

TEST_CASE("CudaThread: all_reduce gives the bits of a sum in the order of ranks on every rank", "[comm][cuda_thread]") {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 1, 255, 30'007);
  check_on_gpus(3, [elements](Staged& world, Findings& findings) {
    auto values = pdp::testing::normal(elements, /*seed*/ world.rank());
    std::vector<float> expected = pdp::testing::normal(elements, 0);
    for (int rank = 1; rank < 3; ++rank) {
      const std::vector<float> theirs = pdp::testing::normal(elements, rank);
      for (std::size_t i = 0; i < elements; ++i) expected[i] += theirs[i];
    }
    world.all_reduce(values, comm::Sum{});
    findings.expect(values == expected, "other bits");
  });
}

TEST_CASE("CudaThread: Min and Max propagate NaN and order signed zeros", "[comm][cuda_thread]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) {
    const bool first = world.rank() == 0;
    std::vector<float> least{first ? NAN : 1.f, first ? 1.f : NAN, first ? 0.f : -0.f, first ? -0.f : 0.f}, greatest = least;
    world.all_reduce(least, comm::Min{});
    world.all_reduce(greatest, comm::Max{});
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) findings.expect(std::isnan(least[i]) && std::isnan(greatest[i]), "NaN");
    for (const std::size_t i : {std::size_t{2}, std::size_t{3}})
      findings.expect(std::signbit(least[i]) && !std::signbit(greatest[i]), "the sign of zero");
  });
}

TEST_CASE("CudaThread: split makes groups that are ordered by key and communicate on their own", "[comm][cuda_thread][split]") {
  const int size = GENERATE(1, 2, 3, 4);
  check_on_gpus(size, [](Staged& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEST_CASE("CudaThread: Works can be waited for in a different order on each rank", "[comm][cuda_thread][async]") {
  const int size = GENERATE(2, 3, 4);
  check_on_gpus(size, [](Staged& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEST_CASE("CudaThread: polling Work::done brings a call to completion", "[comm][cuda_thread][async]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::looks(world, findings, 3'007); });
}

TEST_CASE("CudaThread: grouped starts messages in both directions together", "[comm][cuda_thread][async]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::started_together(world, findings); });
}

TEST_CASE("CudaThread: Works of two groups can be waited for in opposite orders on two ranks", "[comm][cuda_thread][async][split]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEST_CASE("CudaThread: receives match messages by tag in any order, and equal tags keep the order of sends",
          "[comm][cuda_thread][message]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::tags(world, findings); });
}

TEST_CASE("CudaThread: a communicator and its Works can be moved while calls are in flight", "[comm][cuda_thread][async]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEST_CASE("CudaThread: alternating progress and Work::done completes a call without wait", "[comm][cuda_thread][async]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::progress(world, findings); });
}

TEST_CASE("CudaThread: a late rank delays the others and changes no result", "[comm][cuda_thread]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::late_ranks(world, findings); });
}

TEST_CASE("CudaThread: a call with invalid arguments throws at once, and the world remains usable", "[comm][cuda_thread][argument]") {
  if (has_gpu()) arguments::wrong_ones_are_refused<Staged>();
}

TEST_CASE("CudaThread: ranks that wait for a rank that has left throw PeerLost naming it", "[comm][cuda_thread][failure]") {
  if (has_gpu()) failures::rank_leaves<Staged>();
}

TEST_CASE("CudaThread: a missed deadline throws Timeout with call and missing rank, and Duration::max never expires",
          "[comm][cuda_thread][failure]") {
  if (has_gpu()) failures::deadline_passes<Staged>();
  if (has_gpu()) failures::no_deadline_passes<Staged>();
}

TEST_CASE("CudaThread: every call of every group throws the reason given to abort", "[comm][cuda_thread][failure]") {
  if (has_gpu()) failures::calls_after_failure<Staged>();
}

TEST_CASE("CudaThread: destroying a Work in flight ends the world and names the rank that did it", "[comm][cuda_thread][failure][async]") {
  if (has_gpu()) failures::work_is_let_go<Staged>();
}

TEST_CASE("CudaThread: a complete Work can be destroyed without wait", "[comm][cuda_thread][async]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) {
    std::array<float, 4> values{1, 1, 1, 1};
    {
      auto work = world.all_reduce_async(values, comm::Sum{});
      world.barrier();  // calls of a group complete in order
    }
    world.barrier();
    findings.expect(world.size() == 2, "the world goes on");
  });
}

TEST_CASE("CudaThread: an exception between a call and its wait reaches the other ranks as PeerLost",
          "[comm][cuda_thread][failure][async]") {
  if (has_gpu()) failures::error_between<Staged>();
}
