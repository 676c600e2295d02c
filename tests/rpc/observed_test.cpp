#include <pdp/comm/shm.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/run.hpp>
#include <pdp/rpc/statistics.hpp>
#include <pdp/rpc/timeline.hpp>
#include <pdp/testing/ranks.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace comm = pdp::comm;
using pdp::rpc::CallSpan;
using pdp::rpc::MethodStatistics;
using pdp::rpc::Node;

namespace {

std::vector<float> fill(int count) {
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return std::vector<float>(static_cast<std::size_t>(count), 1.0f);
}
int count_of(const std::vector<float>& x) { return static_cast<int>(x.size()); }

const MethodStatistics& find(const std::vector<MethodStatistics>& all, std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](const MethodStatistics& each) { return each.name.ends_with(name); });
  if (found == all.end()) throw std::runtime_error{"no statistics of " + std::string{name}};
  return *found;
}

/// Reads and removes a file.
std::string take(const std::filesystem::path& file) {
  std::ostringstream words;
  words << std::ifstream{file}.rdbuf();
  std::filesystem::remove(file);
  return words.str();
}

}  // namespace

TEST_CASE("statistics() counts calls, bytes, runs and times of each method", "[rpc]") {
  rpc_job::run<comm::Thread>(2, [](Node& node) {
    const std::vector<float> x(1000);
    for (int i = 0; i < 3; ++i) CHECK(node.sync<&count_of>("worker1", x) == 1000);
    for (int i = 0; i < 2; ++i) node.sync<&fill>("worker1", 10);
    node.sync<&count_of>("master", x);
    const auto all = pdp::rpc::statistics(node);
    const MethodStatistics& counted = find(all, "count_of");
    CHECK(counted.calls == 4);
    CHECK(counted.bytes >= 4 * 4000);
    CHECK(counted.bytes < 4 * 4000 + 400);
    CHECK(counted.runs == 1);
    const MethodStatistics& filled = find(all, "fill");
    CHECK(filled.calls == 2);
    CHECK(filled.waiting_seconds >= 0.01);
    CHECK(filled.runs == 0);
  });
}

TEMPLATE_TEST_CASE("A timeline has the calls of all ranks and the results that they have taken", "[rpc]", comm::Thread, comm::Shm) {
  const std::string extension = GENERATE(".json", ".svg");
  const auto file = std::filesystem::temp_directory_path() / ("pdp_calls_" + std::to_string(::getpid()) + extension);
  pdp::testing::ranks<TestType>(3, [&](TestType& world) {
    pdp::rpc::serve(world, {"master", "first<", "second"},
                    [](Node& node) {
                      auto x = node.async<&fill>("first<", 100);
                      CHECK(node.sync<&count_of>("second", x) == 100);
                    },
                    {.timeline = file.string()});
  });
  const std::string words = take(file);
  if (extension == ".svg") {
    CHECK_THAT(words, StartsWith("<svg") && Contains("1 first&lt;") && Contains("fill: ") && Contains("count_of: ") && Contains("<line "));
    return;
  }
  const auto trace = nlohmann::json::parse(words).at("traceEvents");
  const auto event = [&](const std::string& phase, const std::string& name) {
    for (const auto& each : trace)
      if (each.at("ph") == phase && std::string{each.at("name")}.ends_with(name)) return each;
    throw std::runtime_error{"no event " + name};
  };
  const auto fill_event = event("X", "fill"), count_event = event("X", "count_of"), begin = event("s", "result"),
             end = event("f", "result");
  CHECK(std::ranges::any_of(trace, [](const auto& each) { return each.contains("args") && each.at("args").at("name") == "1 first<"; }));
  CHECK(fill_event.at("tid") == 1);
  CHECK(count_event.at("tid") == 2);
  const double microseconds = fill_event.at("dur");
  CHECK(microseconds >= 5000);
  CHECK(begin.at("tid") == 1);
  CHECK(end.at("tid") == 2);
  CHECK(begin.at("id") == end.at("id"));
}

TEST_CASE("A timeline reports a file name of another kind, and calls survive encoding", "[rpc]") {
  pdp::testing::ranks<comm::Thread>(1, [](comm::Thread& world) {
    CHECK_THAT(rpc_job::message_of<pdp::ConfigError>([&] { Node(world, {"master"}, {.timeline = "calls.txt"}); }),
               Contains(".svg or .json"));
  });
  const std::vector<CallSpan> calls{{"a b", 0.5, 1.25, {7, 2}, {{1, 0}, {3, -2}}}, {"c", 1, 2, {}, {}}};
  const auto read = pdp::rpc::decode_calls(pdp::rpc::encode_calls(calls));
  REQUIRE(read.size() == 2);
  CHECK(read[0].name == "a b");
  CHECK(read[0].end == 1.25);
  CHECK(read[0].result == calls[0].result);
  CHECK(read[0].arguments == calls[0].arguments);
  CHECK(read[1].name == "c");
  CHECK(read[1].arguments.empty());
}
