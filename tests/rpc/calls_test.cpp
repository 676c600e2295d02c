#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace calls_test {

namespace comm = pdp::comm;
namespace rpc = pdp::rpc;
using rpc_job::message_of;

namespace {

int square(int x) { return x * x; }
std::vector<float> twice(std::span<const float> x) {
  std::vector<float> y(x.begin(), x.end());
  for (float& each : y) each *= 2;
  return y;
}
double sum(const std::vector<float>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
std::string join(std::string_view a, const char* b, const std::string& c) { return std::string{a} + b + c; }
void fail(const std::string& how) {
  if (how == "range") throw std::out_of_range{"too far"};
  if (how == "shape") throw pdp::ShapeError{"too wide"};
  if (how == "memory") throw std::bad_alloc{};
  if (how == "number") throw 7;
  struct Own : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return "of my own"; }
  };
  throw Own{};
}
int half(int x) { return x / 2; }
double half(double x) { return x / 2; }
std::atomic<bool> is_slow{false};
std::vector<float> slowly(std::vector<float> x) {
  is_slow = true;
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  return x;
}
struct Point {
  std::array<float, 2> at;
  std::vector<std::string> labels;
};
Point shift(Point p, const std::optional<float>& by) {
  for (float& each : p.at) each += by.value_or(100);
  p.labels.emplace_back("shifted");
  return p;
}

}  // namespace

TEMPLATE_TEST_CASE("Node calls free functions on other ranks and on its own", "[rpc]", comm::Thread, comm::Shm, comm::Tcp) {
  std::vector<int> results;
  rpc_job::run<TestType>(3, [&](rpc::Node& node) {
    for (const char* worker : {"master", "worker1", "worker2"}) results.push_back(node.sync<&square>(worker, 7));
    auto first = node.async<&square>("worker1", 2);
    auto second = node.async<&square>("worker2", first);
    results.push_back(second.get());
    results.push_back(first.get());
  });
  CHECK(results == std::vector{49, 49, 49, 16, 4});
}

TEMPLATE_TEST_CASE("Large arrays travel as arguments and results, also directly between workers", "[rpc]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  std::vector<double> sums;
  rpc_job::run<TestType>(3, [&](rpc::Node& node) {
    for (const std::size_t count : {0u, 1u, 100u, 300u, 100'000u}) {
      const std::vector<float> x(count, 1.5f);
      auto doubled = node.async<&twice>("worker1", x);
      sums.push_back(node.sync<&sum>("worker2", doubled));
      sums.push_back(sum(doubled.get()));
      sums.push_back(node.sync<&sum>("worker1", node.async<&twice>("worker1", std::span{x})));
    }
  });
  CHECK(sums == std::vector{0., 0., 0., 3., 3., 3., 300., 300., 300., 900., 900., 900., 300'000., 300'000., 300'000.});
}

TEST_CASE("Remote calls take strings, aggregates and optional values", "[rpc]") {
  std::string joined;
  Point point;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    joined = node.sync<&join>("worker1", "a", std::string{"b"}, "c");
    point = node.sync<&shift>("worker1", Point{{1, 2}, {"start"}}, std::nullopt);
    point = node.sync<&shift>("worker1", node.async<&shift>("worker1", point, 0.5f), 1);
  });
  CHECK(joined == "abc");
  CHECK(point.at == std::array{102.5f, 103.5f});
  CHECK(point.labels == std::vector<std::string>{"start", "shifted", "shifted", "shifted"});
}

TEMPLATE_TEST_CASE("An exception of a remote call arrives as its type, with its text, function and rank", "[rpc]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  std::vector<std::string> messages;
  rpc_job::run<TestType>(2, [&](rpc::Node& node) {
    const auto call = [&](const char* how) { return [&node, how] { node.sync<&fail>("worker1", how); }; };
    messages = {message_of<std::out_of_range>(call("range")), message_of<pdp::ShapeError>(call("shape")),
                message_of<std::bad_alloc>(call("memory")), message_of<rpc::RemoteError>(call("number")),
                message_of<rpc::RemoteError>(call("own"))};
  });
  REQUIRE(messages.size() == 5);
  CHECK_THAT(messages[0], EndsWith("fail on rank 1 (worker1): too far"));
  CHECK_THAT(messages[1], EndsWith("fail on rank 1 (worker1): too wide"));
  CHECK_THAT(messages[2], Contains("fail on rank 1 (worker1): "));
  CHECK_THAT(messages[3], EndsWith("fail on rank 1 (worker1): an object was thrown that is not a std::exception"));
  CHECK_THAT(messages[4], EndsWith("fail on rank 1 (worker1): of my own"));
}

TEST_CASE("The error of a call fails the calls that depend on it, also before it is known", "[rpc]") {
  std::vector<std::string> messages;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto failing = node.async<&shift>("worker1", Point{}, 1);
    auto bad = node.remote<std::vector<float>>("worker1", std::size_t{1} << 62);
    messages.push_back(message_of<std::exception>([&] { node.sync<&sum>("worker2", bad); }));
    messages.push_back(message_of<std::exception>([&] { node.sync<&sum>("worker1", bad); }));
    static_cast<void>(failing.get());
  });
  REQUIRE(messages.size() == 2);
  for (const std::string& message : messages) CHECK_THAT(message, Contains("std::vector<float") && Contains("on rank 1 (worker1): "));
}

TEST_CASE("The error of a one-way call or of a lost Future is thrown by a later call or at the end", "[rpc]") {
  const bool later = GENERATE(true, false);
  const bool one_way = GENERATE(true, false);
  const bool arrived = GENERATE(true, false);
  const auto message = message_of<pdp::ShapeError>([&] {
    rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
      if (one_way)
        node.one_way<&fail>("worker1", "shape");
      else if (auto future = node.async<&fail>("worker1", "shape"); arrived)
        while (!future.ready()) {
        }
      if (later)
        for (int i = 0; i < 100; ++i) static_cast<void>(node.sync<&square>("worker1", i));
    });
  });
  CHECK_THAT(message, EndsWith("fail on rank 1 (worker1): too wide"));
}

TEST_CASE("Overloads are different functions", "[rpc]") {
  double sum = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    sum = node.sync<static_cast<int (*)(int)>(&half)>("worker1", 3) + node.sync<static_cast<double (*)(double)>(&half)>("worker1", 3);
  });
  CHECK(sum == 2.5);
}

TEST_CASE("The value of a Future can be taken while a message that has it as argument is under way", "[rpc]") {
  std::vector<double> sums;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    for (const std::size_t count : {300u, 100'000u}) {
      auto future = node.async<&twice>("worker1", std::vector<float>(count, 1));
      while (count == 300 && !future.ready()) {
      }
      auto busy = node.async<&slowly>("worker2", std::vector<float>{});
      auto dependent = node.async<&sum>("worker2", future);
      {
        auto taken = future.get();
        std::ranges::fill(taken, 7.0f);
      }
      sums.push_back(dependent.get());
    }
  });
  CHECK(sums == std::vector{600., 200'000.});
}

TEST_CASE("A large result can be an argument after get() has run out of time", "[rpc]") {
  double result = 0;
  std::string message;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto large = node.async<&twice>("worker1", std::vector<float>(100'000, 1));
    static_cast<void>(node.sync<&square>("worker1", 1));
    is_slow = false;
    auto busy = node.async<&slowly>("worker1", std::vector<float>{});
    while (!is_slow) node.progress();
    message = message_of<pdp::Timeout>([&] { static_cast<void>(large.get(std::chrono::milliseconds{10})); });
    result = node.sync<&sum>("worker2", large);
  });
  CHECK_THAT(message, Contains("twice on rank 1 (worker1) until its deadline"));
  CHECK(result == 200'000);
}

TEST_CASE("10,000 calls can be in flight, and leave nothing behind", "[rpc]") {
  std::int64_t total = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    std::vector<rpc::Future<int>> futures;
    for (int i = 0; i < 10'000; ++i) futures.push_back(node.async<&square>("worker1", i % 100));
    for (auto& future : futures) total += future.get();
  });
  CHECK(total == 100 * 328'350);
}

TEST_CASE("Node rejects unknown and repeated names, and another number of ranks", "[rpc]") {
  CHECK_THAT(message_of<pdp::ConfigError>(
                 [] { rpc_job::run<comm::Thread>(2, [](rpc::Node& node) { static_cast<void>(node.sync<&square>("worker7", 1)); }); }),
             Contains("no rank has the name 'worker7'; the names are master, worker1"));
  const auto with_names = [](const std::vector<std::string>& names) {
    return message_of<pdp::ConfigError>(
        [&] { pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) { rpc::serve(world, names, [](rpc::Node&) {}); }); });
  };
  CHECK_THAT(with_names({"a", "a"}), Contains("two ranks have the name 'a'"));
  CHECK_THAT(with_names({"a", ""}), Contains("the name of a rank is empty"));
  CHECK_THAT(with_names({"a", "b", "c"}), Contains("3 names were given for 2 ranks"));
}

TEST_CASE("A Future that is empty or has been read throws EmptyReference", "[rpc]") {
  rpc::Future<int> none;
  CHECK_THROWS_AS(none.get(), rpc::EmptyReference);
  std::string message;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto future = node.async<&square>("worker1", 3);
    static_cast<void>(future.get());
    message = message_of<rpc::EmptyReference>([&] { static_cast<void>(node.sync<&square>("worker1", future)); });
  });
  CHECK_THAT(message, Contains("has been taken by get()"));
}

}  // namespace calls_test
