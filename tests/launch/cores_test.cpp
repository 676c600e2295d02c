#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/launch/process/cores.hpp>
#include <pdp/launch/process/shared_cores.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"
#include "launch/job.hpp"

namespace cores_test {

namespace launch = pdp::launch;
using launch::Cores;
using launch_test::Job;

namespace {

Cores cores_of(const std::vector<int>& numbers) {
  Cores cores;
  CPU_ZERO(&cores);
  for (const int number : numbers) CPU_SET(static_cast<std::size_t>(number), &cores);
  return cores;
}

/// Returns whether the test programs have OpenMP and may use more than one core.
bool openmp_binds() {
  Cores own;
  return ::dlsym(RTLD_DEFAULT, "omp_get_num_places") != nullptr && ::sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&own) > 1;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

TEST_CASE("launch::describe writes cores as ranges", "[launch][cores]") {
  CHECK(launch::describe(cores_of({})).empty());
  CHECK(launch::describe(cores_of({5})) == "5");
  CHECK(launch::describe(cores_of({0, 1, 2, 3, 8, 10, 11, 1023})) == "0-3,8,10-11,1023");
}

TEST_CASE("share_of divides the places of OpenMP among the local ranks in order", "[launch][cores]") {
  const auto shares = [](std::size_t places, int ranks) {
    std::vector<Cores> all;
    for (std::size_t place = 0; place < places; ++place)
      all.push_back(cores_of({static_cast<int>(2 * place), static_cast<int>(2 * place + 1)}));
    std::vector<std::string> words;
    for (int rank = 0; rank < ranks; ++rank) words.push_back(launch::describe(launch::share_of(all, rank, ranks).value()));
    return words;
  };
  CHECK(shares(4, 1) == std::vector<std::string>{"0-7"});
  CHECK(shares(4, 2) == std::vector<std::string>{"0-3", "4-7"});
  CHECK(shares(4, 3) == std::vector<std::string>{"0-1", "2-3", "4-7"});
  CHECK(shares(2, 2) == std::vector<std::string>{"0-1", "2-3"});
  CHECK(shares(2, 4) == std::vector<std::string>{"0-1", "0-1", "2-3", "2-3"});
  CHECK(shares(1, 3) == std::vector<std::string>{"0-1", "0-1", "0-1"});
  CHECK_FALSE(launch::share_of({}, 0, 2));
}

TEST_CASE("The launcher gives its ranks different cores if OpenMP binds threads", "[launch][cores]") {
  if (!openmp_binds()) return;
  const std::string variable = GENERATE(as<std::string>{}, "OMP_PROC_BIND", "GOMP_CPU_AFFINITY");
  const std::string value = variable == "OMP_PROC_BIND" ? "true" : [] {
    Cores own;
    ::sched_getaffinity(0, sizeof own, &own);
    return launch::describe(own);
  }();
  Job job{{"cores", "--ranks", "2"}, {{variable, value}}};
  CHECK(job.end() == 0);
  CHECK(job.err().empty());
  const std::vector<std::string> lines = sorted_lines(job.out());
  INFO(variable << '=' << value << ": " << job.out());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("rank 0 on "));
  CHECK(lines[1].starts_with("rank 1 on "));
  CHECK(lines[0].substr(10) != lines[1].substr(10));
}

TEST_CASE("One rank warns if OpenMP has bound several ranks to the same core", "[launch][cores]") {
  if (!openmp_binds()) return;
  const std::uint16_t port = launch_test::free_port();
  const bool bound = GENERATE(true, false);
  std::vector<std::unique_ptr<Job>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    auto variables = launch_test::rank_of(rank, 2, port);
    if (bound) variables.emplace_back("OMP_PROC_BIND", "true");
    ranks.push_back(std::make_unique<Job>(std::vector<std::string>{"cores"}, variables));
  }
  std::string words;
  for (const auto& each : ranks) {
    CHECK(each->end() == 0);
    words += each->err();
  }
  if (!bound) CHECK(words.empty());
  if (bound) {
    CHECK(std::ranges::count(words, '\n') == 1);
    CHECK_THAT(words, StartsWith("rank ") && Contains("OpenMP has bound this rank and others of this machine to core ") &&
                          Contains("OMP_PROC_BIND"));
  }
}

namespace {

/// A store whose calls all throw `failure`.
template <class Failure>
struct FailingStore {
  Failure failure;
  void set(std::string_view, std::string_view) { throw failure; }
  std::string wait(std::string_view, pdp::comm::TimePoint) { throw failure; }
  std::optional<std::string> get(std::string_view) { throw failure; }
  std::int64_t add(std::string_view, std::int64_t) { throw failure; }
};

}  // namespace

TEST_CASE("count_ranks_on counts the ranks on equal cores even if the list of cores is long", "[launch][cores]") {
  Cores even, odd;
  CPU_ZERO(&even);
  CPU_ZERO(&odd);
  for (std::size_t core = 0; core < CPU_SETSIZE; core += 2) {
    CPU_SET(core, &even);
    CPU_SET(core + 1, &odd);
  }
  launch::TcpStoreServer server;
  launch::TcpStore store{"127.0.0.1", server.port(), pdp::comm::Clock::now() + std::chrono::seconds{60}};
  CHECK(launch::count_ranks_on(even, store) == 1);
  CHECK(launch::count_ranks_on(even, store) == 2);
  CHECK(launch::count_ranks_on(odd, store) == 1);
  CHECK(launch::key_of_cores(even, "host") != launch::key_of_cores(even, "another"));
}

TEST_CASE("count_ranks_on returns nothing if the store is full, and throws if the job has failed", "[launch][cores]") {
  FailingStore<pdp::ConfigError> full{pdp::ConfigError{"the job's store is full"}};
  CHECK_FALSE(launch::count_ranks_on(cores_of({1}), full).has_value());
  FailingStore<pdp::PeerLost> failed{pdp::PeerLost{1, "rank 1 has failed"}};
  CHECK_THROWS_AS(launch::count_ranks_on(cores_of({1}), failed), pdp::PeerLost);
}

}  // namespace cores_test
