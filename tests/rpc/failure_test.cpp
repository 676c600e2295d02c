#include <chrono>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace failure_test {

namespace comm = pdp::comm;
namespace rpc = pdp::rpc;
using namespace std::chrono_literals;
using rpc_job::message_of;

namespace {

int sleep_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
  return milliseconds;
}
int identity(int x) { return x; }
std::size_t size_of(std::span<const float> x) { return x.size(); }

/// A value for which the other rank has no memory.
struct Oversized {
  std::vector<float> values;
};

}  // namespace

}  // namespace failure_test

template <>
struct pdp::rpc::Codec<failure_test::Oversized> {
  static void write(Writer& writer, const failure_test::Oversized& value) { Codec<std::vector<float>>::write(writer, value.values); }
  static void read(Reader&, failure_test::Oversized&) { throw std::bad_alloc{}; }
};

namespace failure_test {

namespace {

std::size_t count(const Oversized& x) { return x.values.size(); }

}  // namespace

TEST_CASE("A result that is late throws Timeout, which names the call, and the job goes on", "[rpc][failure]") {
  std::string message;
  int after = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto late = node.async<&sleep_for>("worker1", 300);
    message = message_of<pdp::Timeout>([&] { static_cast<void>(late.get(20ms)); });
    after = node.sync<&identity>("worker1", 5) + late.get();
  });
  CHECK_THAT(message,
             StartsWith("rank 0 (master) has waited for the result of ") && Contains("sleep_for on rank 1 (worker1) until its deadline"));
  CHECK(after == 305);
}

TEST_CASE("A call that runs out of time and borrows nothing leaves the job usable", "[rpc][failure]") {
  int after = 0;
  std::string message;
  rpc_job::run<comm::Thread>(
      2,
      [&](rpc::Node& node) {
        auto busy = node.async<&sleep_for>("worker1", 600);
        message = message_of<pdp::Timeout>([&] { static_cast<void>(node.sync<&identity>("worker1", 1)); });
        after = busy.get(10s);
      },
      400ms);
  CHECK_THAT(message, Contains("identity on rank 1 (worker1) until its deadline"));
  CHECK(after == 600);
}

TEST_CASE("Destroying a Future in flight leaves the job usable", "[rpc][failure]") {
  int after = 0;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    for (int i = 0; i < 100; ++i) {
      auto lost = node.async<&identity>("worker1", i);
      auto dependent = node.async<&identity>("worker2", lost);
      if (i % 2 == 0) after += dependent.get();
    }
  });
  CHECK(after == 2450);
}

TEST_CASE("Arguments that do not fit into memory fail the call, and the job goes on", "[rpc][failure]") {
  const std::size_t elements = GENERATE(std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 22) + 3);
  std::string message;
  int after = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    message = message_of<std::bad_alloc>([&] { static_cast<void>(node.sync<&count>("worker1", Oversized{std::vector<float>(elements)})); });
    after = node.sync<&identity>("worker1", 5);
  });
  CHECK_THAT(message, Contains("do not fit into the memory of rank 1 (worker1)"));
  CHECK(after == 5);
}

TEMPLATE_TEST_CASE("Ranks that wait for a lost worker throw PeerLost", "[rpc][failure]", comm::Thread, comm::Shm, comm::Tcp) {
  const auto errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
    rpc::Node node{world, {"master", "worker1", "worker2"}};
    if (world.rank() == 2) {
      node.progress();
      return;  // without serving until the end
    }
    if (world.rank() == 1) return node.serve();
    static_cast<void>(node.sync<&identity>("worker2", 1));
    node.end();
  });
  for (const std::size_t rank : {0u, 1u}) {
    INFO(errors[rank].what());
    CHECK(errors[rank].template is<pdp::PeerLost>());
  }
}

TEMPLATE_TEST_CASE("An exception of the master ends the job, and the workers name it", "[rpc][failure]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const auto errors = pdp::testing::errors<TestType>(3, [](TestType& world) {
    rpc::serve(world, {"master", "worker1", "worker2"}, [](rpc::Node& node) {
      static_cast<void>(node.sync<&identity>("worker2", 1));
      throw std::runtime_error{"the data is gone"};
    });
  });
  CHECK(errors[0].what() == "the data is gone");
  for (const std::size_t rank : {1u, 2u}) {
    CHECK(errors[rank].template is<pdp::PeerLost>());
    CHECK_THAT(errors[rank].what(), Contains("rank 0 (master) has failed: the data is gone"));
  }
}

TEST_CASE("Calls of more than 16 MiB arrive whole", "[rpc]") {
  std::size_t size = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    const std::vector<float> x((std::size_t{1} << 22) + 3, 1.0f);
    size = node.sync<&size_of>("worker1", x);
  });
  CHECK(size == (std::size_t{1} << 22) + 3);
}

}  // namespace failure_test
