// Requirements on every backend after a failure. Each function is the body of one test.
#pragma once

#include <pdp/comm/self.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace failures {

namespace comm = pdp::comm;
using namespace std::chrono_literals;
using pdp::testing::Thrown;

/// Returns the exception that f throws, or an empty Thrown.
template <class F>
Thrown thrown_by(F&& f) {
  try {
    f();
  } catch (...) {
    return Thrown{std::current_exception()};
  }
  return {};
}

/// A rank returns while the others still wait for it.
template <class Comm>
void rank_leaves() {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Thrown> errors;
  SECTION("in a collective") {
    errors = pdp::testing::errors<Comm>(4, [](Comm& world) {
      world.barrier();
      if (world.rank() == 2) return;
      std::vector<float> values(1000);
      for (int i = 0; i < 3; ++i) world.all_reduce(values, comm::Sum{});
    });
  }
  SECTION("in a receive") {
    errors = pdp::testing::errors<Comm>(4, [](Comm& world) {
      if (world.rank() == 2) return;
      std::array<int, 3> values{};
      if (world.rank() == 0) world.recv(values, 2);
      world.barrier();
    });
  }
  SECTION("in a send") {
    errors = pdp::testing::errors<Comm>(4, [](Comm& world) {
      world.barrier();
      if (world.rank() == 2) return;
      const std::vector<int> values(10'000'000 / sizeof(int));
      if (world.rank() == 0) world.send(values, 2);
      world.barrier();
    });
  }
  SECTION("in a split group, whose error names the rank in the world") {
    errors = pdp::testing::errors<Comm>(4, [](Comm& world) {
      Comm even = world.split(world.rank() % 2, 0);
      if (world.rank() == 2) return;
      if (world.rank() == 0) even.barrier();
      world.barrier();
    });
  }
  CHECK(std::chrono::steady_clock::now() - start < (PDP_TEST_SANITIZED ? 10s : 2s));
  REQUIRE(errors.size() == 4);
  CHECK_FALSE(errors[2]);
  for (const int rank : {0, 1, 3}) {
    const Thrown& error = errors[static_cast<std::size_t>(rank)];
    CHECK(error.lost_rank() == 2);
    CHECK_THAT(error.what(), Contains("rank 2"));
  }
}

/// A rank computes for longer than the deadline.
template <class Comm>
void deadline_passes() {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<Comm>(2, [](Comm& world) {
    world.barrier();
    std::vector<float> values(8);
    if (world.rank() == 0) {
      world.deadline(100ms);
      world.all_reduce(values, comm::Sum{});
    } else {
      const auto until = comm::Clock::now() + (PDP_TEST_SANITIZED ? 3000ms : 600ms);
      while (comm::Clock::now() < until) std::this_thread::yield();  // computes without any call
      world.all_reduce(values, comm::Sum{});
      world.barrier();
    }
  });
  CHECK(std::chrono::steady_clock::now() - start > 100ms);
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::Timeout>());
    CHECK_THAT(error.what(), Contains("rank 0 waited 100 ms for all_reduce of 8 float32 and heard nothing from rank 1"));
  }
}

/// Under the longest possible deadline, late calls still complete.
template <class Comm>
void no_deadline_passes() {
  pdp::testing::ranks<Comm>(2, [](Comm& world) {
    world.deadline(comm::Duration::max());
    for (int call = 0; call < 2; ++call) {
      std::vector<float> values(8, 1);
      if (world.rank() == call) std::this_thread::sleep_for(50ms);
      world.all_reduce(values, comm::Sum{});
      if (values[7] != 2) throw std::logic_error{"wrong values"};
    }
  });
}

/// After abort(), every call of every group throws the reason.
template <class Comm>
void calls_after_failure() {
  const int size = std::same_as<Comm, comm::Self> ? 1 : 3;
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<Comm>(size, [](Comm& world) {
    Comm part = world.split(0, 0);
    std::array<float, 3> values{};
    if (world.rank() == 0) {
      for (int peer = 1; peer < world.size(); ++peer) world.recv(values, peer);
      world.abort("the disk is full");
    } else {
      static_cast<void>(thrown_by([&] { world.send(values, 0); }));  // may already throw because of the abort
    }
    const std::array calls{thrown_by([&] { world.all_reduce(values, comm::Sum{}); }), thrown_by([&] { part.barrier(); }),
                           thrown_by([&] { world.broadcast(values, 0); }), thrown_by([&] { static_cast<void>(world.split(0, 0)); })};
    for (const Thrown& each : calls)
      if (each.lost_rank() != 0 || each.what() != "the disk is full") throw std::logic_error{each.what()};
    throw std::runtime_error{"as expected"};
  });
  for (const Thrown& error : errors) CHECK(error.what() == "as expected");
}

/// A Work goes out of scope while it is in flight.
template <class Comm>
void work_is_let_go() {
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<Comm>(2, [](Comm& world) {
    std::array<int, 4> few{};
    if (world.rank() == 0) {
      {
        auto values = std::make_unique<std::vector<float>>(50'000, 1.f);
        auto message = std::make_unique<std::vector<float>>(50'000, 1.f);
        auto receiving = world.recv_async(*message, 1, 9);
        auto work = world.all_reduce_async(*values, comm::Sum{});
      }
      world.barrier();
    } else {
      const std::vector<float> message(50'000, 2.f);
      std::vector<float> values(50'000, 1.f);
      const auto sent = thrown_by([&] { world.send(message, 0, 9); });
      world.recv(few, 0, 10);  // never sent, so the all_reduce of rank 0 stays incomplete
      world.all_reduce(values, comm::Sum{});
    }
  });
  for (const Thrown& error : errors) {
    CHECK(error.lost_rank() == 0);
    CHECK_THAT(error.what(), Contains("rank 0 abandoned all_reduce of 50000 float32 before it was complete"));
  }
}

/// A rank throws while calls are in flight.
template <class Comm>
void error_between() {
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<Comm>(3, [](Comm& world) {
    std::vector<float> gradients(10'000, 1.f);
    std::array<double, 2> totals{};
    auto reduction = world.all_reduce_async(gradients, comm::Sum{});
    auto totalling = world.all_reduce_async(totals, comm::Sum{});
    if (world.rank() == 1) throw pdp::ShapeError{"a label beyond the classes"};
    reduction.wait();
    totalling.wait();
    world.barrier();
  });
  CHECK(errors[1].is<pdp::ShapeError>());
  CHECK(errors[0].lost_rank() == 1);
  CHECK(errors[2].lost_rank() == 1);
}

/// A Work goes out of scope once it is complete.
template <class Comm>
void complete_work_is_let_go() {
  const int size = std::same_as<Comm, comm::Self> ? 1 : 2;
  pdp::testing::ranks<Comm>(size, [](Comm& world) {
    std::array<float, 4> values{1, 1, 1, 1};
    {
      auto work = world.all_reduce_async(values, comm::Sum{});
      world.barrier();  // calls of a group complete in order
    }
    world.barrier();
    if (values[0] != static_cast<float>(world.size())) throw std::logic_error{"another sum"};
  });
}

}  // namespace failures
