// Arguments that every backend rejects before a call begins. The function is the body of one test.
#pragma once

#include <pdp/comm/self.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"

namespace arguments {

namespace comm = pdp::comm;

template <class Comm>
void wrong_ones_are_refused() {
  const int size = std::same_as<Comm, comm::Self> ? 1 : 3;
  using Call = std::function<void(Comm&, std::span<float>)>;
  std::string expected;
  Call call;
  bool shape = false;
  SECTION("a root beyond the group") {
    call = [](Comm& world, std::span<float> values) { world.broadcast(values, world.size()); };
    expected = pdp::text("broadcast on rank 0 names root ", size, ", but the size of the group is ", size, "; ranks count from 0");
  }
  SECTION("a negative root") {
    call = [](Comm& world, std::span<float> values) { world.reduce(values, comm::Sum{}, -1); };
    expected = "reduce on rank 0 names root -1";
  }
  SECTION("a message to the sending rank") {
    call = [](Comm& world, std::span<float> values) { world.send(values, world.rank()); };
    expected = "rank 0 cannot send to itself; copy the values";
  }
  SECTION("a message from a rank beyond the group") {
    call = [](Comm& world, std::span<float> values) { world.recv(values, world.size()); };
    expected = pdp::text("rank 0 cannot receive from rank ", size, " of a group of ", size, " ranks");
  }
  SECTION("a message to a negative rank") {
    call = [](Comm& world, std::span<float> values) { world.send(values, -1); };
    expected = pdp::text("rank 0 cannot send to rank -1 of a group of ", size, " ranks");
  }
  SECTION("a negative tag") {
    if (size == 1) return;
    call = [](Comm& world, std::span<float> values) { world.send(values, (world.rank() + 1) % world.size(), -1); };
    expected = "rank 0 cannot send to rank 1 with tag -1; tags are 0 or more";
  }
  SECTION("shards that do not add up to the whole") {
    shape = true;
    call = [](Comm& world, std::span<float> values) { world.reduce_scatter(values, values.first(1), comm::Sum{}); };
    expected = pdp::text("reduce_scatter on rank 0: the whole must have ", size, " elements (", size, " shards of 1), but it has 4");
  }
  SECTION("a whole that is too small for the shards") {
    shape = true;
    call = [](Comm& world, std::span<float> values) { world.all_gather(values, values.first(2)); };
    expected = pdp::text("all_gather on rank 0: the whole must have ", 4 * size, " elements (", size, " shards of 4), but it has 2");
  }
  SECTION("more counts than ranks") {
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      world.all_gather(values.first(1), values, std::vector<std::size_t>(static_cast<std::size_t>(world.size()) + 1, 1));
    };
    expected = pdp::text("all_gather on rank 0 was given ", size + 1, " counts for ", size, " ranks");
  }
  SECTION("a shard whose size differs from its count") {
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      world.reduce_scatter(values, values.first(2), std::vector<std::size_t>(static_cast<std::size_t>(world.size()), 1), comm::Sum{});
    };
    expected = "reduce_scatter on rank 0: the counts give this rank 1 elements, but its shard has 2";
  }
  SECTION("a whole whose size differs from the sum of the counts") {
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      world.gather(values.first(2), values.first(1), std::vector<std::size_t>(static_cast<std::size_t>(world.size()), 2), world.rank());
    };
    expected = pdp::text("gather on rank 0: the counts add up to ", 2 * size, " elements, but the whole has 1");
  }
  SECTION("all_to_all with counts for one side only") {
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      std::vector<float> out(static_cast<std::size_t>(world.size()));
      world.all_to_all(out, std::vector<std::size_t>(out.size(), 1), values, {});
    };
    expected = pdp::text("all_to_all on rank 0 was given 0 counts for ", size, " ranks");
  }
  SECTION("all_to_all in place") {
    call = [](Comm& world, std::span<float> values) {
      std::vector<float> both(2 * static_cast<std::size_t>(world.size()), values[0]);
      world.all_to_all(both, both);
    };
    expected = "all_to_all on rank 0 reads and writes the same memory; it cannot work in place";
  }
  SECTION("send_recv of two types") {
    if (size == 1) return;
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      std::array<int, 4> whole_numbers{};
      world.send_recv(values, (world.rank() + 1) % world.size(), whole_numbers, (world.rank() + 2) % world.size());
    };
    expected = "send_recv on rank 0 sends float32 and receives int32; both must be of one type";
  }
  SECTION("all_gather of two types") {
    shape = true;
    call = [](Comm& world, std::span<float> values) {
      std::vector<std::int32_t> whole(values.size() * static_cast<std::size_t>(world.size()));
      world.all_gather(values, whole);
    };
    expected = "all_gather on rank 0 reads float32 and writes int32; both must be of one type";
  }

  const auto words = pdp::testing::ranks<Comm>(size, [&](Comm& world) {
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

}  // namespace arguments
