// Tests of Gloo only: how ranks connect, what happens if one is gone, and what happens if calls differ.
#include <pdp/comm/checked.hpp>
#include <pdp/comm/gloo.hpp>
#include <pdp/comm/gloo/connect.hpp>
#include <pdp/launch/store/file_store.hpp>
#include <pdp/testing/ranks.hpp>

#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>

#include <array>
#include <atomic>
#include <latch>

#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "comm/failures.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;
using comm::Gloo;
using pdp::testing::Thrown;

namespace {

/// Runs f(rank) for each rank on a thread of its own. Returns what each of them throws, or an empty Thrown.
template <class F>
std::vector<Thrown> on_threads(int size, F&& f) {
  std::vector<Thrown> thrown(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] { thrown[static_cast<std::size_t>(rank)] = failures::thrown_by([&] { f(rank); }); });
  }
  return thrown;
}

}  // namespace

TEST_CASE("Gloo::connect names the missing rank at the deadline", "[comm][gloo][start]") {
  const int missing = GENERATE(0, 1, 3);
  pdp::launch::InProcessStore store;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Thrown> thrown = on_threads(4, [&](int rank) {
    if (rank != missing) Gloo::connect(store, rank, 4, comm::Clock::now() + 2s);
  });
  CHECK(std::chrono::steady_clock::now() - start < 20s);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == missing) continue;
    const Thrown& error = thrown[static_cast<std::size_t>(rank)];
    CHECK(error.is<pdp::Timeout>());
    CHECK_THAT(error.what(), Contains(pdp::text("has not heard from rank ", missing, " (of 4 ranks) before the deadline for the start")));
  }
}

TEST_CASE("Gloo::connect reports a rank that ends during the start as lost", "[comm][gloo][start]") {
  // Rank 0 gets the address only after rank 1 has gone. If rank 1 left while rank 0 connects to it, Gloo's own thread would end the
  // process.
  struct UntilGone {
    pdp::launch::InProcessStore& store;
    std::latch& gone;
    void set(std::string_view key, std::string_view value) { store.set(key, value); }
    std::string wait(std::string_view key, comm::TimePoint deadline) { return gone.wait(), store.wait(key, deadline); }
    std::optional<std::string> get(std::string_view key) { return store.get(key); }
    std::int64_t add(std::string_view key, std::int64_t amount) { return store.add(key, amount); }
  };
  pdp::launch::InProcessStore store;
  std::latch gone{1};
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Thrown> thrown = on_threads(2, [&](int rank) {
    if (rank == 0) {
      UntilGone patient{store, gone};
      return static_cast<void>(Gloo::connect(patient, 0, 2, comm::Clock::now() + 2s));
    }
    {
      const comm::gloo::Quiet quiet;
      const auto device = ::gloo::transport::tcp::CreateDevice("127.0.0.1");
      const comm::gloo::Connecting connecting{*device, 1, 2, 1s};
      comm::gloo::Directory{store, 1, 2}.publish(1, connecting);
    }
    gone.count_down();
  });
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK(thrown[0].lost_rank() == 1);
  CHECK_THAT(thrown[0].what(), Contains("rank 1"));
}

TEST_CASE("Gloo::connect rejects a rank beyond the world and a world of no ranks", "[comm][gloo][start]") {
  pdp::launch::InProcessStore store;
  CHECK_THROWS_AS(Gloo::connect(store, 2, 2, comm::Clock::now() + 1s), pdp::ConfigError);
  CHECK_THROWS_AS(Gloo::connect(store, 0, 0, comm::Clock::now() + 1s), pdp::ConfigError);
}

TEST_CASE("Gloo connects several worlds, one after another, through one store", "[comm][gloo][start]") {
  pdp::launch::InProcessStore store;
  const std::vector<Thrown> thrown = on_threads(3, [&](int rank) {
    for (int world_number = 0; world_number < 3; ++world_number) {
      Gloo world = Gloo::connect(store, rank, 3, comm::Clock::now() + 20s);
      std::array sum{rank};
      world.all_reduce(sum, comm::Sum{});
      if (sum[0] != 3) throw std::logic_error{"another sum"};
    }
  });
  for (const Thrown& error : thrown) CHECK(error.what() == "nothing was thrown");
}

TEST_CASE("No rank of Gloo uses the store after one of them has connected", "[comm][gloo][start]") {
  const auto store = std::make_shared<pdp::launch::InProcessStore>();
  struct Counted {
    pdp::launch::InProcessStore& store;
    std::atomic<int>& uses;
    void set(std::string_view key, std::string_view value) { ++uses, store.set(key, value); }
    std::string wait(std::string_view key, comm::TimePoint deadline) { return ++uses, store.wait(key, deadline); }
    std::optional<std::string> get(std::string_view key) { return ++uses, store.get(key); }
    std::int64_t add(std::string_view key, std::int64_t amount) { return ++uses, store.add(key, amount); }
  };
  std::atomic<int> uses{0}, late{0};
  const std::vector<Thrown> thrown = on_threads(3, [&](int rank) {
    if (rank == 1) std::this_thread::sleep_for(50ms);
    Counted counted{*store, uses};
    Gloo world = Gloo::connect(counted, rank, 3, comm::Clock::now() + 20s);
    const int seen = uses;
    world.barrier();
    if (uses != seen) ++late;
  });
  for (const Thrown& error : thrown) CHECK(error.what() == "nothing was thrown");
  CHECK(late == 0);
}

TEST_CASE("Gloo adopts a program's context, which the program can still use", "[comm][gloo][adopt]") {
  ::gloo::rendezvous::HashStore store;
  const std::vector<Thrown> thrown = on_threads(3, [&](int rank) {
    auto context = std::make_shared<::gloo::rendezvous::Context>(rank, 3);
    auto device = ::gloo::transport::tcp::CreateDevice("127.0.0.1");
    context->connectFullMesh(store, device);
    const auto sum_of_the_program = [&] {
      std::array<float, 100> values{};
      values.fill(1);
      ::gloo::AllreduceOptions options{context};
      options.setOutput(values.data(), values.size());
      options.setReduceFunction([](void* into, const void* left, const void* right, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
          static_cast<float*>(into)[i] = static_cast<const float*>(left)[i] + static_cast<const float*>(right)[i];
      });
      ::gloo::allreduce(options);
      if (values.back() != 3) throw std::logic_error{"another sum of the program's"};
    };
    {
      Gloo world{context};
      Findings findings;
      std::vector<int> values(10'000, 1);
      auto work = world.all_reduce_async(values, comm::Sum{});
      sum_of_the_program();
      work.wait();
      behaviour::split_groups(world, findings);
      if (values.back() != 3 || !findings.found().empty()) throw std::logic_error{"another sum of pdp's"};
    }
    sum_of_the_program();  // the world is destroyed, the program's connections are not
  });
  for (const Thrown& error : thrown) CHECK(error.what() == "nothing was thrown");
}

TEST_CASE("Gloo rejects a null context, and an unconnected one of several ranks", "[comm][gloo][adopt]") {
  CHECK_THROWS_AS(Gloo{std::shared_ptr<::gloo::Context>{}}, pdp::ConfigError);
  CHECK_THROWS_WITH(Gloo{std::make_shared<::gloo::rendezvous::Context>(0, 2)}, Contains("its ranks must be connected"));
  Gloo alone{std::make_shared<::gloo::rendezvous::Context>(0, 1)};
  CHECK(alone.size() == 1);
}

TEST_CASE("Checked over Gloo gives correct results", "[comm][gloo][checked]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) {
    comm::Checked checked{std::move(world)};
    conformance::uneven_shards<std::int64_t>(checked, findings, 2);
    comm::Checked part = checked.split(checked.rank() == 2 ? 1 : 0, 0);
    std::array sum{1};
    part.all_reduce(sum, comm::Sum{});
    findings.expect(sum[0] == part.size(), "a group");
  });
}

TEST_CASE("Checked over Gloo throws MismatchedCollective with both calls on every rank", "[comm][gloo][checked][mismatch]") {
  const auto errors = pdp::testing::errors<Gloo>(3, [](Gloo& world) {
    comm::Checked checked{std::move(world)};
    std::vector<float> values(checked.rank() == 1 ? 9 : 8);
    checked.all_reduce(values, comm::Sum{});
  });
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains("all_reduce of 8 float32 on rank 0") && Contains("all_reduce of 9 float32 on rank 1"));
  }
}

TEST_CASE("Gloo without Checked throws Timeout at the deadline if calls differ", "[comm][gloo][mismatch]") {
  using Call = std::function<void(Gloo&, std::span<float>)>;
  const std::vector<std::pair<Call, Call>> faults{
      {[](Gloo& world, std::span<float> v) { world.all_reduce(v.first(8), comm::Sum{}); },
       [](Gloo& world, std::span<float> v) { world.all_reduce(v.first(900), comm::Sum{}); }},
      {[](Gloo& world, std::span<float> v) { world.broadcast(v.first(8), 0); },
       [](Gloo& world, std::span<float> v) { world.broadcast(v.first(8), 1); }},
      {[](Gloo& world, std::span<float> v) {
         world.all_gather(v.first(1), v.first(2), std::array<std::size_t, 2>{1, 1});
       },
       [](Gloo& world, std::span<float> v) {
         world.all_gather(v.first(2), v.first(2), std::array<std::size_t, 2>{0, 2});
       }},
      {[](Gloo& world, std::span<float> v) {
         const std::array<std::size_t, 2> counts{1, 1};
         world.all_to_all(v.first(2), counts, v.subspan(10, 2), counts);
       },
       [](Gloo& world, std::span<float> v) {
         const std::array<std::size_t, 2> counts{500, 1};
         world.all_to_all(v.first(501), counts, v.subspan(501, 501), counts);
       }},
      {[](Gloo& world, std::span<float> v) { world.send(v.first(1000), 1); },
       [](Gloo& world, std::span<float> v) { world.recv(v.first(1), 0); }},
  };
  for (const auto& [on_rank_0, on_rank_1] : faults) {
    const auto errors = pdp::testing::errors<Gloo>(2, [&](Gloo& world) {
      world.deadline(300ms);
      std::vector<float> values(1100, 1);
      (world.rank() == 0 ? on_rank_0 : on_rank_1)(world, values);
      world.barrier();
    });
    for (const Thrown& error : errors) {
      CHECK(error.is<pdp::Timeout>());
      CHECK_THAT(error.what(), Contains("waited 300 ms for") && Contains("makes other calls or none"));
    }
  }
}

TEST_CASE("Gloo reports a failed rank to a rank that waits for another one", "[comm][gloo][failure]") {
  std::atomic<bool> over{false};
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<Gloo>(3, [&](Gloo& world) {
    std::array<int, 4> values{};
    world.barrier();
    if (world.rank() == 0) {
      std::this_thread::sleep_for(50ms);
      throw pdp::FileError{"the disk is full"};
    }
    if (world.rank() == 1) {  // waits for a rank that does not fail
      const Thrown thrown = failures::thrown_by([&] { world.recv(values, 2); });
      over = true;
      thrown.rethrow();
    }
    while (!over) std::this_thread::yield();
    world.barrier();
  });
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  for (const int rank : {1, 2}) {
    CHECK(errors[static_cast<std::size_t>(rank)].lost_rank() == 0);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)].what(), Contains("the disk is full"));
  }
}

TEST_CASE("Gloo reports a failed rank to ranks in the middle of a large message", "[comm][gloo][failure]") {
  std::atomic<comm::TimePoint> start{comm::TimePoint::max()};
  const auto errors = pdp::testing::errors<Gloo>(3, [&](Gloo& world) {
    std::vector<float> values(4 << 20);
    world.barrier();
    if (world.rank() == 0) {
      auto one = world.all_reduce_async(values, comm::Sum{});
      std::this_thread::sleep_for(2ms);
      start = comm::Clock::now();
      throw pdp::FileError{"the disk is full"};
    }
    while (true) world.all_reduce(values, comm::Sum{});
  });
  CHECK(comm::Clock::now() - start.load() < 5s);
  for (const int rank : {1, 2}) CHECK(errors[static_cast<std::size_t>(rank)].lost_rank() == 0);
}

TEST_CASE("Gloo lets the other ranks go on after a rank has left", "[comm][gloo][failure]") {
  check_on_ranks<Gloo>(3, [](Gloo& world, Findings& findings) {
    Gloo pair = world.split(world.rank() == 2 ? 1 : 0, 0);
    world.barrier();
    if (world.rank() == 2) return;
    std::this_thread::sleep_for(100ms);
    std::array sum{1};
    for (int i = 0; i < 10; ++i) pair.all_reduce(sum, comm::Max{});
    world.send_recv(std::array{7}, 1 - world.rank(), sum, 1 - world.rank());
    findings.expect(sum[0] == 7, "a message");
  });
}

TEST_CASE("Gloo throws PeerLost and raises no signal on a send to a rank that has left", "[comm][gloo][failure]") {
  const auto errors = pdp::testing::errors<Gloo>(2, [](Gloo& world) {
    world.barrier();
    if (world.rank() == 1) return;
    const std::vector<float> values(100);
    for (int i = 0; i < 1000; ++i) static_cast<void>(world.send_async(values, 1, i));
  });
  CHECK(errors[0].is<pdp::PeerLost>());
}
