// Runs the tests of all backends on comm::Nccl, on the stand-in for NCCL or on real GPUs.
#include <pdp/testing/values.hpp>

#include <iostream>

#include "comm/arguments.hpp"
#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/failures.hpp"
#include "staged.hpp"

namespace comm = pdp::comm;

namespace {

/// Returns whether NCCL can run so many ranks on the GPUs of this machine. If not, prints what is skipped.
bool have_gpus(int ranks) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::cout << "skipped: there is no GPU\n";
    return false;
  }
  if (gpus >= ranks || comm::Nccl::shares_gpus()) return true;
  WARN("left out: " << ranks << " ranks need as many GPUs, but there are " << gpus);
  return false;
}

/// As check_on_ranks, if there are enough GPUs.
template <class F>
void check_on_gpus(int size, F&& f) {
  if (have_gpus(size)) check_on_ranks<Staged>(size, f);
}

}  // namespace

TEST_CASE("Nccl: every verb gives the serial result", "[comm][nccl]") {
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
  SECTION("for large values, uneven shards, 16-bit floats and int8") {
    check_on_gpus(size, [](Staged& world, Findings& findings) {
      conformance::switch_points(world, findings);
      for (const std::size_t base : {std::size_t{0}, std::size_t{500}, std::size_t{9000}}) {
        conformance::uneven_shards<float>(world, findings, base);
        conformance::uneven_shards<std::int64_t>(world, findings, base);
      }
      conformance::sums_of<pdp::Float16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
      conformance::sums_of<pdp::BFloat16, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
      conformance::sums_of<std::int8_t, comm::Sum, comm::Product, comm::Min, comm::Max, comm::Average>(world, findings);
    });
  }
}

TEST_CASE("Nccl: all_reduce gives the sum over ranks with equal bits on every rank", "[comm][nccl]") {
  const std::size_t elements = GENERATE(as<std::size_t>{}, 255, 300'007);
  check_on_gpus(3, [elements](Staged& world, Findings& findings) {
    auto values = pdp::testing::normal(elements, /*seed*/ world.rank());
    world.all_reduce(values, comm::Sum{});
    std::vector<float> all(3 * elements);
    world.all_gather(values, all);
    for (std::size_t rank = 0; rank < 3; ++rank)
      findings.expect(std::equal(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * elements)), "other bits");
    findings.expect(pdp::testing::relative_difference(values, pdp::testing::serial_sum(3, elements)) < 1e-6, "another sum");
  });
}

TEST_CASE("Nccl: split makes groups that are ordered by key and communicate on their own", "[comm][nccl][split]") {
  const int size = GENERATE(1, 2, 3, 4);
  check_on_gpus(size, [](Staged& world, Findings& findings) { behaviour::split_groups(world, findings); });
}

TEST_CASE("Nccl: Works can be waited for in a different order on each rank", "[comm][nccl][async]") {
  const int size = GENERATE(2, 3, 4);
  check_on_gpus(size, [](Staged& world, Findings& findings) { behaviour::works_in_any_order(world, findings); });
}

TEST_CASE("Nccl: polling Work::done brings a call to completion", "[comm][nccl][async]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::looks(world, findings, 30'007); });
}

TEST_CASE("Nccl: grouped starts messages in both directions together", "[comm][nccl][async]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) { behaviour::started_together(world, findings); });
}

TEST_CASE("Nccl: Works of two groups can be waited for in opposite orders on two ranks", "[comm][nccl][async][split]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::two_groups(world, findings); });
}

TEST_CASE("Nccl: a communicator and its Works can be moved while calls are in flight", "[comm][nccl][async]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::moves_in_flight(world, findings); });
}

TEST_CASE("Nccl: alternating progress and Work::done completes a call without wait", "[comm][nccl][async]") {
  check_on_gpus(2, [](Staged& world, Findings& findings) { behaviour::progress(world, findings); });
}

TEST_CASE("Nccl: messages of two ranks keep their order for any tags, and overtake the calls of other groups", "[comm][nccl][message]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) {
    const int rank = world.rank(), right = (rank + 1) % 3, left = (rank + 2) % 3;
    Staged lane = world.split(0, rank);
    std::array own{rank}, other{-1};
    lane.send_recv(own, right, other, left);  // connects the ranks
    std::vector<std::vector<int>> sent, received;
    for (int i = 0; i < 5; ++i) {
      sent.emplace_back(i == 3 ? 100'000 : static_cast<std::size_t>(i), rank * 10 + i);
      received.emplace_back(sent.back().size(), -1);
    }
    std::vector<Staged::Work> works;
    const auto send = [&] {
      for (int i = 0; i < 5; ++i) works.push_back(lane.send_async(sent[static_cast<std::size_t>(i)], right, 5 - i));
    };
    const auto receive = [&] {
      for (int i = 0; i < 5; ++i) works.push_back(lane.recv_async(received[static_cast<std::size_t>(i)], left, 5 - i));
    };
    if (rank == 0) send();
    std::vector<double> values(20'000, 1);
    world.all_reduce(values, comm::Sum{});
    receive();  // first on rank 1, since rank 0 has sent before the sum; then on rank 2, then on rank 0
    if (rank != 0) send();
    for (std::size_t i = works.size(); i-- > 0;) works[i].wait();
    for (int i = 0; i < 5; ++i)
      findings.expect(received[static_cast<std::size_t>(i)] == std::vector<int>(sent[static_cast<std::size_t>(i)].size(), left * 10 + i),
                      pdp::text("message ", i));
    findings.expect(values.back() == 3, "the sum");
  });
}

TEST_CASE("Nccl: grouped exchanges several messages with each peer, for any order of peers", "[comm][nccl][message]") {
  const int size = GENERATE(2, 3, 4);
  check_on_gpus(size, [size](Staged& world, Findings& findings) {
    std::vector<std::array<int, 2>> sent, received(static_cast<std::size_t>(3 * size), {-1, -1});
    for (int to = 0; to < size; ++to)
      for (int i = 0; i < 3; ++i) sent.push_back({world.rank(), 10 * to + i});
    std::vector<Staged::Work> works;
    world.grouped([&] {  // neighbours name their peers in opposite orders
      for (int step = 1; step < size; ++step)
        for (int i = 0; i < 3; ++i) {
          const int peer = (world.rank() + (world.rank() % 2 == 0 ? step : size - step)) % size;
          works.push_back(world.recv_async(received[static_cast<std::size_t>(3 * peer + i)], peer));
          works.push_back(world.send_async(sent[static_cast<std::size_t>(3 * peer + i)], peer));
        }
    });
    for (auto& work : works) work.wait();
    for (int peer = 0; peer < size; ++peer)
      for (int i = 0; i < 3 && peer != world.rank(); ++i)
        findings.expect(received[static_cast<std::size_t>(3 * peer + i)] == std::array{peer, 10 * world.rank() + i},
                        pdp::text("message ", i, " of rank ", peer));
  });
}

TEST_CASE("Nccl: a late rank delays the others and changes no result", "[comm][nccl]") {
  check_on_gpus(3, [](Staged& world, Findings& findings) {
    std::vector<double> values(20'000, 1);
    for (int round = 0; round < 3; ++round) {
      if (world.rank() == round) std::this_thread::sleep_for(std::chrono::milliseconds{100});
      world.all_reduce(values, comm::Max{});
      const std::array sent{world.rank(), round};
      std::array received{-1, -1};
      world.send_recv(sent, (world.rank() + 1) % 3, received, (world.rank() + 2) % 3);
      findings.expect(received == std::array{(world.rank() + 2) % 3, round}, "the message");
    }
    findings.expect(values == std::vector<double>(20'000, 1), "the largest of equal values");
  });
}

TEST_CASE("Nccl: a complete Work can be destroyed without wait", "[comm][nccl][async]") {
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

TEST_CASE("Nccl: a call with invalid arguments throws at once, and the world remains usable", "[comm][nccl][argument]") {
  if (have_gpus(3)) arguments::wrong_ones_are_refused<Staged>();
}
