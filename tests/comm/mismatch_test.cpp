#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/testing/ranks.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "catch.hpp"
#include "on_hosts.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

void check_mismatch(const std::vector<pdp::testing::Thrown>& errors, const std::string& one, const std::string& other) {
  for (const auto& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains(one) && Contains(other));
    CHECK_THAT(error.what(), Contains("every rank must make the same calls in the same order"));
  }
}

/// A collective call with its arguments.
struct AnyCall {
  enum Verb { barrier, broadcast, reduce, all_reduce, reduce_scatter, all_gather, all_to_all, gather, scatter };
  static constexpr int verbs = 9;

  Verb verb = barrier;
  int root = 0;           // if the verb has one; taken modulo the size of the group
  std::size_t count = 2;  // elements of each rank, or of its shard
  bool integers = false;  // else floats
  bool largest = false;   // else the sum, if the verb reduces
  bool of_half = false;   // made in a group of every other rank, else in the world

  [[nodiscard]] bool has_root() const { return verb == broadcast || verb == reduce || verb == gather || verb == scatter; }
  [[nodiscard]] bool reduces() const { return verb == reduce || verb == all_reduce || verb == reduce_scatter; }

  [[nodiscard]] std::string words() const {
    static constexpr std::array<const char*, verbs> names{"barrier",    "broadcast",  "reduce", "all_reduce", "reduce_scatter",
                                                          "all_gather", "all_to_all", "gather", "scatter"};
    return pdp::text(names[static_cast<std::size_t>(verb)], " of ", count, integers ? " int32" : " float32", largest ? " (max)" : "",
                     " root ", root, of_half ? " in a half" : "");
  }

  template <class Comm>
  void make(Comm& world, Comm& half) const {
    integers ? make_of<std::int32_t>(of_half ? half : world) : make_of<float>(of_half ? half : world);
  }

 private:
  template <class T, class Comm>
  void make_of(Comm& group) const {
    const auto size = static_cast<std::size_t>(group.size());
    std::vector<T> one(count), other(count), all(count * size), more(count * size);
    const int at = root % group.size();
    const auto reduced_by = [&](auto operation) {
      if (verb == reduce) group.reduce(one, operation, at);
      if (verb == all_reduce) group.all_reduce(one, operation);
      if (verb == reduce_scatter) group.reduce_scatter(std::as_const(all), one, operation);
    };
    if (reduces()) largest ? reduced_by(comm::Max{}) : reduced_by(comm::Sum{});
    if (verb == barrier) group.barrier();
    if (verb == broadcast) group.broadcast(one, at);
    if (verb == all_gather) group.all_gather(std::as_const(one), all);
    if (verb == all_to_all) group.all_to_all(std::as_const(all), more);
    if (verb == gather) group.gather(std::as_const(one), all, at);
    if (verb == scatter) group.scatter(std::as_const(all), one, at);
  }
};

/// All verbs, with each of the roots.
std::vector<AnyCall> any_calls(const std::vector<int>& roots) {
  std::vector<AnyCall> calls;
  for (int verb = 0; verb < AnyCall::verbs; ++verb)
    for (const int root : roots) {
      const AnyCall call{.verb = static_cast<AnyCall::Verb>(verb), .root = root};
      if (root == roots.front() || call.has_root()) calls.push_back(call);
    }
  return calls;
}

/// Calls of the same verb that differ from `call` in one argument.
std::vector<AnyCall> variations_of(const AnyCall& call, int ranks) {
  std::vector<AnyCall> others;
  const auto add = [&](auto change) { change(others.emplace_back(call)); };
  if (call.verb != AnyCall::barrier) {
    add([](AnyCall& other) { other.count = 3; });
    add([](AnyCall& other) { other.count = 30'000; });
    add([](AnyCall& other) { other.integers = true; });
  }
  if (call.reduces()) add([](AnyCall& other) { other.largest = true; });
  for (int root = 0; root < ranks && call.has_root(); ++root)
    if (root != call.root) add([root](AnyCall& other) { other.root = root; });
  return others;
}

/// The calls of each rank of a world.
using Calls = std::vector<std::vector<AnyCall>>;

/// All ranks make `call`, except the culprit, which makes `other`.
Calls one_differs(int ranks, int culprit, const AnyCall& call, const AnyCall& other) {
  Calls calls(static_cast<std::size_t>(ranks), {call});
  calls[static_cast<std::size_t>(culprit)] = {other};
  return calls;
}

/// The results of many mismatches.
struct Outcome {
  int cases = 0;
  std::vector<double> seconds{};  // until all ranks have thrown
  std::vector<std::string> unnoticed{};
};

/// Runs each rank's calls and a barrier after them. Adds the result to `outcome`.
template <class Comm>
void try_calls(const Calls& calls, Outcome& outcome) {
  const bool halves = std::ranges::any_of(calls, [](const auto& each) { return std::ranges::any_of(each, &AnyCall::of_half); });
  std::vector<Clock::time_point> began(calls.size()), thrown(calls.size());
  const auto errors = pdp::testing::errors<Comm>(
      static_cast<int>(calls.size()),
      [&](Comm& world) {
        Comm half = world.split(halves ? world.rank() % 2 : 0, 0);
        const auto rank = static_cast<std::size_t>(world.rank());
        began[rank] = Clock::now();
        try {
          for (const AnyCall& each : calls[rank]) each.make(world, half);
          world.barrier();
        } catch (...) {
          thrown[rank] = Clock::now();
          throw;
        }
      },
      10s);
  ++outcome.cases;
  outcome.seconds.push_back(std::chrono::duration<double>(*std::ranges::max_element(thrown) - *std::ranges::max_element(began)).count());
  if (std::ranges::all_of(errors, [](const auto& error) { return error.template is<pdp::MismatchedCollective>(); })) return;
  std::string words;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    words += pdp::text("rank ", rank, " of ", calls.size(), ":");
    for (const AnyCall& each : calls[rank]) words += " " + each.words() + ",";
    words += pdp::text(" and ", errors[rank].what(), "\n");
  }
  outcome.unnoticed.push_back(words);
}

/// The guarantee is 2 s. A loaded machine may take four times as long.
void check(const Outcome& outcome) {
  for (const std::string& each : outcome.unnoticed) FAIL_CHECK(each);
  CHECK(*std::ranges::max_element(outcome.seconds) < 4 * 2);
}

/// Tries every pair of verbs, with equal and different roots. The size of the world (2 to 4) and the rank that differs change from case to
/// case. For every verb, also tries one other difference in the arguments, and one pair of calls in the wrong order.
template <class Comm>
Outcome try_sample() {
  Outcome outcome;
  std::size_t turn = 0;
  const auto calls = any_calls({0, 1});
  for (const AnyCall& one : calls)
    for (const AnyCall& other : calls) {
      if (&one >= &other) continue;
      if (PDP_TEST_SANITIZED && (&one - &other) % 3 != 0) continue;
      const int ranks = 2 + static_cast<int>(turn % 3), culprit = static_cast<int>(turn / 3 % static_cast<std::size_t>(ranks));
      const bool swapped = ++turn % 2 == 0;
      try_calls<Comm>(one_differs(ranks, culprit, swapped ? other : one, swapped ? one : other), outcome);
    }
  for (const AnyCall& one : any_calls({1})) {
    const int ranks = 2 + static_cast<int>(turn % 3), culprit = static_cast<int>(turn / 3 % static_cast<std::size_t>(ranks));
    const auto variations = variations_of(one, ranks);
    if (!variations.empty()) try_calls<Comm>(one_differs(ranks, culprit, one, variations[turn % variations.size()]), outcome);
    const AnyCall other{.verb = static_cast<AnyCall::Verb>((one.verb + 1 + static_cast<int>(turn % 8)) % AnyCall::verbs)};
    Calls wrong_order(static_cast<std::size_t>(ranks), {one, other});
    wrong_order[static_cast<std::size_t>(culprit)] = {other, one};
    try_calls<Comm>(wrong_order, outcome);
    ++turn;
  }
  return outcome;
}

/// Tries every pair of calls with every rank as the one that differs. Also tries two ranks against two, all ranks different, and two calls
/// in the wrong order.
template <class Comm>
Outcome try_all(int ranks) {
  Outcome outcome;
  const auto size = static_cast<std::size_t>(ranks);
  const auto calls = any_calls({0, ranks - 1});
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const AnyCall& one = calls[i];
    auto others = variations_of(one, ranks);
    others.insert(others.end(), calls.begin(), calls.end());
    for (const AnyCall& other : others) {
      if (other.words() == one.words()) continue;
      for (int culprit = 0; culprit < ranks; ++culprit) try_calls<Comm>(one_differs(ranks, culprit, one, other), outcome);
      for (std::size_t partner = 1; ranks == 4 && partner < size; ++partner) {
        Calls two_against_two(size, {other});
        two_against_two[0] = two_against_two[partner] = {one};
        try_calls<Comm>(two_against_two, outcome);
      }
      for (const int culprit : {0, ranks - 1}) {
        Calls wrong_order(size, {one, other});
        wrong_order[static_cast<std::size_t>(culprit)] = {other, one};
        try_calls<Comm>(wrong_order, outcome);
      }
    }
    for (std::size_t step = 1; ranks > 2 && step < calls.size() / size; ++step) {
      Calls all_differ(size);
      for (std::size_t rank = 0; rank < size; ++rank) all_differ[rank] = {calls[(i + rank * step) % calls.size()]};
      try_calls<Comm>(all_differ, outcome);
    }
  }
  return outcome;
}

}  // namespace

TEMPLATE_TEST_CASE("all_reduce with different sizes throws MismatchedCollective with both sizes on every rank", "[comm][mismatch]",
                   comm::Thread, comm::Shm, comm::Tcp) {
  const std::vector<pdp::testing::Thrown> errors = pdp::testing::errors<TestType>(2, [](TestType& world) {
    std::vector<float> values(world.rank() == 0 ? 8 : 9);
    world.all_reduce(values, comm::Sum{});
  });

  check_mismatch(errors, "all_reduce of 8 float32 on rank 0", "9 float32 on rank 1");
}

TEMPLATE_TEST_CASE("Different calls throw MismatchedCollective with both calls on every rank", "[comm][mismatch]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  std::vector<pdp::testing::Thrown> errors;
  std::string one, other;
  SECTION("in the element type") {
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
  SECTION("in the operation") {
    errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
      std::array<float, 4> values{};
      if (world.rank() == 1)
        world.all_reduce(values, comm::Max{});
      else
        world.all_reduce(values, comm::Sum{});
    });
    one = "all_reduce of 4 float32 on rank", other = "all_reduce of 4 float32 (max) on rank 1";
  }
  SECTION("in the root") {
    errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
      std::array<float, 4> values{};
      world.broadcast(values, world.rank() == 1 ? 1 : 0);
      world.barrier();
    });
    one = "broadcast of 4 float32 with root", other = "on rank 1";
  }
  SECTION("in the size, so that one rank uses another algorithm") {
    errors = pdp::testing::errors<TestType>(4, [](TestType& world) {
      std::vector<float> values(world.rank() == 3 ? 100'000 : 100);
      world.all_reduce(values, comm::Sum{});
    });
    one = "all_reduce of 100000 float32 on rank 3", other = "all_reduce of 100 float32 on rank";
  }
  SECTION("in the size of a message and its receive") {
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
  SECTION("in the number of calls") {
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

TEMPLATE_TEST_CASE("Any two different calls throw on every rank within seconds, at the latest in the next barrier", "[comm][mismatch]",
                   comm::Thread, comm::Shm, comm::Tcp, OnHosts) {
  OnHosts::layout = Layout::pairs;
  check(try_sample<TestType>());
}

TEMPLATE_TEST_CASE("Different calls in a group throw on every rank of the world", "[comm][mismatch][split]", comm::Thread, comm::Shm,
                   comm::Tcp, OnHosts) {
  OnHosts::layout = Layout::pairs;
  Outcome outcome;
  const auto calls = any_calls({0});
  for (std::size_t i = 0; i < calls.size(); ++i) {
    AnyCall one = calls[i], other = calls[(i + 1 + i % 4) % calls.size()];
    one.of_half = other.of_half = true;
    try_calls<TestType>(one_differs(4, static_cast<int>(i % 4), one, other), outcome);
  }
  check(outcome);
}

// In its first call a rank may only send, so the ranks may find the difference only in the barrier.
TEMPLATE_TEST_CASE("No rank passes a barrier if ranks have made different calls before it", "[comm][mismatch]", comm::Thread, comm::Shm,
                   comm::Tcp, OnHosts) {
  OnHosts::layout = Layout::pairs;
  const int ranks = GENERATE(2, 3, 4, 7);
  std::atomic<int> passed = 0;
  const auto errors = pdp::testing::errors<TestType>(ranks, [&](TestType& world) {
    std::array<float, 4> values{};
    if (world.rank() == 1)
      world.broadcast(values, 1);
    else
      world.reduce(values, comm::Sum{}, 1);
    world.barrier();
    ++passed;
  });
  CHECK(passed == 0);
  for (const auto& error : errors) {
    INFO(error.what());
    CHECK(error.template is<pdp::MismatchedCollective>());
  }
}

TEMPLATE_TEST_CASE("Every mismatch of calls on 2, 3 and 4 ranks throws on every rank within seconds", "[comm][mismatch][.long]",
                   comm::Thread, comm::Shm, comm::Tcp, OnHosts) {
  OnHosts::layout = GENERATE(Layout::pairs, Layout::interleaved);
  if (!std::same_as<TestType, OnHosts> && OnHosts::layout != Layout::pairs) return;
  const int ranks = GENERATE(2, 3, 4);
  Outcome outcome = try_all<TestType>(ranks);
  std::ranges::sort(outcome.seconds);
  std::printf("%s\n",
              pdp::text(R"({"campaign": "mismatched calls", "comm": ")", TestType::name, R"(", "ranks": )", ranks, R"(, "cases": )",
                        outcome.cases, R"(, "noticed": )", outcome.cases - static_cast<int>(outcome.unnoticed.size()), R"(, "median_s": )",
                        outcome.seconds[outcome.seconds.size() / 2], R"(, "max_s": )", outcome.seconds.back(), "}")
                  .c_str());
  check(outcome);
}

TEMPLATE_TEST_CASE("A call with invalid arguments throws at once, and the world remains usable", "[comm][argument]", comm::Self,
                   comm::Thread, comm::Shm, comm::Tcp) {
  arguments::wrong_ones_are_refused<TestType>();
}
