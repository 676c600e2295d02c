#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <functional>

#include "catch.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;

namespace {

using Clock = comm::Clock;

void check_mismatch(const std::vector<pdp::testing::Thrown>& errors, const std::string& one, const std::string& other) {
  for (const auto& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains(one) && Contains(other));
    CHECK_THAT(error.what(), Contains("every rank must make the same calls in the same order"));
  }
}

/// A call of each verb, for the matrix of those that do not go together. `values` has 2 elements for each of 2 ranks.
template <class Comm>
struct AnyCall {
  const char* words;
  std::function<void(Comm&, std::span<float>)> make;
};
template <class Comm>
std::vector<AnyCall<Comm>> any_calls() {
  return {{"barrier", [](Comm& world, std::span<float>) { world.barrier(); }},
          {"broadcast of 2 float32 with root 0", [](Comm& world, std::span<float> v) { world.broadcast(v.first(2), 0); }},
          {"broadcast of 2 float32 with root 1", [](Comm& world, std::span<float> v) { world.broadcast(v.first(2), 1); }},
          {"reduce of 2 float32 with root 0", [](Comm& world, std::span<float> v) { world.reduce(v.first(2), comm::Sum{}, 0); }},
          {"reduce of 2 float32 with root 1", [](Comm& world, std::span<float> v) { world.reduce(v.first(2), comm::Sum{}, 1); }},
          {"all_reduce of 2 float32", [](Comm& world, std::span<float> v) { world.all_reduce(v.first(2), comm::Sum{}); }},
          {"reduce_scatter of 2 float32", [](Comm& world, std::span<float> v) { world.reduce_scatter(v, v.first(2), comm::Sum{}); }},
          {"all_gather of 2 float32",
           [](Comm& world, std::span<float> v) {
             world.all_gather(std::array{1.f, 2.f}, v);
           }},
          {"all_to_all of 2 float32",
           [](Comm& world, std::span<float> v) {
             world.all_to_all(std::array{1.f, 2.f, 3.f, 4.f}, v);
           }},
          {"gather of 2 float32 with root 0",
           [](Comm& world, std::span<float> v) {
             world.gather(std::array{1.f, 2.f}, v, 0);
           }},
          {"gather of 2 float32 with root 1",
           [](Comm& world, std::span<float> v) {
             world.gather(std::array{1.f, 2.f}, v, 1);
           }},
          {"scatter of 2 float32 with root 0", [](Comm& world, std::span<float> v) { world.scatter(v, v.first(2), 0); }},
          {"scatter of 2 float32 with root 1", [](Comm& world, std::span<float> v) { world.scatter(v, v.first(2), 1); }}};
}

}  // namespace

TEMPLATE_TEST_CASE("all_reduce with different sizes throws on every rank and names both", "[comm][mismatch]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
    std::vector<float> values(world.rank() == 0 ? 8 : 9);
    world.all_reduce(values, comm::Sum{});
  });

  check_mismatch(errors, "all_reduce of 8 float32 on rank 0", "9 float32 on rank 1");
}

TEMPLATE_TEST_CASE("calls that differ in type, operation or root throw on every rank and name both", "[comm][mismatch]", comm::Thread,
                   comm::Shm, comm::Tcp) {
  std::vector<pdp::testing::Thrown> errors;
  std::string one, other;
  SECTION("type") {
    errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
      std::array<float, 4> floats{};
      std::array<std::int32_t, 4> integers{};
      if (world.rank() == 1)
        world.all_reduce(integers, comm::Sum{});
      else
        world.all_reduce(floats, comm::Sum{});
    });
    one = "all_reduce of 4 float32 on rank", other = "all_reduce of 4 int32 on rank 1";
  }
  SECTION("operation") {
    errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
      std::array<float, 4> values{};
      if (world.rank() == 1)
        world.all_reduce(values, comm::Max{});
      else
        world.all_reduce(values, comm::Sum{});
    });
    one = "all_reduce of 4 float32 on rank", other = "all_reduce of 4 float32 (max) on rank 1";
  }
  SECTION("root") {
    errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
      std::array<float, 4> values{};
      world.broadcast(values, world.rank() == 1 ? 1 : 0);
      world.barrier();
    });
    one = "broadcast of 4 float32 with root", other = "on rank 1";
  }
  SECTION("a large size, which goes another way than a small one") {
    errors = pdp::testing::errors<TestType>(4, [](TestType& world) {
      std::vector<float> values(world.rank() == 3 ? 100'000 : 100);
      world.all_reduce(values, comm::Sum{});
    });
    one = "all_reduce of 100000 float32 on rank 3", other = "all_reduce of 100 float32 on rank";
  }
  SECTION("a message that is longer than its receive") {
    errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
      std::vector<float> values(world.rank() == 0 ? 8 : 9);
      if (world.rank() == 0)
        world.send(values, 1, 4);
      else
        world.recv(values, 0, 4);
      world.barrier();
    });
    one = "send of 8 float32 with tag 4 on rank 0", other = "send of 9 float32 with tag 4 on rank 1";
  }
  SECTION("a call more on one rank") {
    errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
      std::array<float, 4> values{};
      if (world.rank() == 0) world.broadcast(values, 0);
      world.barrier();
      world.barrier();
    });
    one = "on rank 0 (call", other = "barrier on rank 1 (call 1 of its group)";
  }
  check_mismatch(errors, one, other);
}

TEMPLATE_TEST_CASE("any two different calls throw on both ranks, at the latest in their next barrier, within two seconds",
                   "[comm][mismatch]", comm::Thread, comm::Shm, comm::Tcp) {
  const auto calls = any_calls<TestType>();
  for (std::size_t first = 0; first < calls.size(); ++first)
    for (std::size_t second = 0; second < calls.size(); ++second) {
      if (first == second) continue;
      const auto start = Clock::now();
      const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<TestType>(
          2,
          [&](TestType& world) {
            std::array<float, 4> values{};
            calls[world.rank() == 0 ? first : second].make(world, values);
            world.barrier();
          },
          4s);
      INFO(calls[first].words << " on rank 0, " << calls[second].words << " on rank 1");
      CHECK(Clock::now() - start < 2s);
      for (const auto& error : errors) {
        CHECK(error.is<pdp::MismatchedCollective>());
        CHECK_THAT(error.what(), Contains("on rank 0") && Contains("on rank 1"));
      }
    }
}

TEMPLATE_TEST_CASE("a call that cannot be right on its own is refused at once, and the world goes on", "[comm][argument]", comm::Self,
                   comm::Thread, comm::Shm, comm::Tcp) {
  const int size = std::same_as<TestType, comm::Self> ? 1 : 3;
  using Call = std::function<void(TestType&, std::span<float>)>;
  std::string expected;
  Call call;
  bool shape = false;
  SECTION("a root that the group does not have") {
    call = [](TestType& world, std::span<float> values) { world.broadcast(values, world.size()); };
    expected = pdp::text("broadcast on rank 0 names root ", size, ", but the group has ranks 0 to ", size - 1);
  }
  SECTION("a negative root") {
    call = [](TestType& world, std::span<float> values) { world.reduce(values, comm::Sum{}, -1); };
    expected = "reduce on rank 0 names root -1";
  }
  SECTION("a message to oneself") {
    call = [](TestType& world, std::span<float> values) { world.send(values, world.rank()); };
    expected = "rank 0 cannot send to itself; copy the values";
  }
  SECTION("a message from nobody") {
    call = [](TestType& world, std::span<float> values) { world.recv(values, world.size()); };
    expected = pdp::text("rank 0 cannot receive from rank ", size, " of a group of ", size, " ranks");
  }
  SECTION("a message to a negative rank") {
    call = [](TestType& world, std::span<float> values) { world.send(values, -1); };
    expected = pdp::text("rank 0 cannot send to rank -1 of a group of ", size, " ranks");
  }
  SECTION("a negative tag") {
    if (size == 1) return;
    call = [](TestType& world, std::span<float> values) { world.send(values, (world.rank() + 1) % world.size(), -1); };
    expected = "rank 0 cannot send to rank 1 with tag -1; tags are 0 or more";
  }
  SECTION("shards that do not make up the whole") {
    shape = true;
    call = [](TestType& world, std::span<float> values) { world.reduce_scatter(values, values.first(1), comm::Sum{}); };
    expected = pdp::text("reduce_scatter on rank 0: the whole must be ", size, " shards of 1 elements, ", size, ", but it has 4");
  }
  SECTION("a whole that is too small for the shards") {
    shape = true;
    call = [](TestType& world, std::span<float> values) { world.all_gather(values, values.first(2)); };
    expected = pdp::text("all_gather on rank 0: the whole must be ", size, " shards of 4 elements, ", 4 * size, ", but it has 2");
  }
  SECTION("counts for more ranks than there are") {
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      world.all_gather(values.first(1), values, std::vector<std::size_t>(static_cast<std::size_t>(world.size()) + 1, 1));
    };
    expected = pdp::text("all_gather on rank 0 was given ", size + 1, " counts for ", size, " ranks");
  }
  SECTION("a shard that the counts do not say") {
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      world.reduce_scatter(values, values.first(2), std::vector<std::size_t>(static_cast<std::size_t>(world.size()), 1), comm::Sum{});
    };
    expected = "reduce_scatter on rank 0: the counts give this rank 1 elements, but its shard has 2";
  }
  SECTION("a whole that the counts do not say") {
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      world.gather(values.first(2), values.first(1), std::vector<std::size_t>(static_cast<std::size_t>(world.size()), 2), world.rank());
    };
    expected = pdp::text("gather on rank 0: the counts add up to ", 2 * size, " elements, but the whole has 1");
  }
  SECTION("shards of one side only") {
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      std::vector<float> out(static_cast<std::size_t>(world.size()));
      world.all_to_all(out, std::vector<std::size_t>(out.size(), 1), values, {});
    };
    expected = pdp::text("all_to_all on rank 0 was given 0 counts for ", size, " ranks");
  }
  SECTION("an exchange of shards in place") {
    call = [](TestType& world, std::span<float> values) {
      std::vector<float> both(2 * static_cast<std::size_t>(world.size()), values[0]);
      world.all_to_all(both, both);
    };
    expected = "all_to_all on rank 0 reads and writes the same memory; it cannot work in place";
  }
  SECTION("an exchange of two types") {
    if (size == 1) return;
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      std::array<int, 4> whole_numbers{};
      world.send_recv(values, (world.rank() + 1) % world.size(), whole_numbers, (world.rank() + 2) % world.size());
    };
    expected = "send_recv on rank 0 sends float32 and receives int32; both must be of one type";
  }
  SECTION("two types") {
    shape = true;
    call = [](TestType& world, std::span<float> values) {
      std::vector<std::int32_t> whole(values.size() * static_cast<std::size_t>(world.size()));
      world.all_gather(values, whole);
    };
    expected = "all_gather on rank 0 reads float32 and writes int32; both must be of one type";
  }

  const auto words = pdp::testing::ranks<TestType>(size, [&](TestType& world) {
    std::array<float, 4> values{};
    std::string what = "nothing was thrown";
    try {
      call(world, values);
    } catch (const pdp::ConfigError& error) {
      what = shape ? "a ConfigError" : error.what();
    } catch (const pdp::ShapeError& error) {
      what = shape ? error.what() : "a ShapeError";
    }
    world.barrier();
    return what;
  });
  CHECK_THAT(words.front(), Contains(expected));
}
