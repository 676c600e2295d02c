// Fault campaigns: ranks are killed or stopped at random moments. Each rank is a process without a launcher, so every survivor must find
// out by itself that another rank is lost.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "launch/job.hpp"

using launch_test::Clock;
using launch_test::Job;
using launch_test::Variable;
using namespace std::chrono_literals;

namespace {

/// Tests allow four times the promised seconds, as other tests may keep the machine busy. The figures that a long campaign prints do not
/// contain this factor.
constexpr double slack = 4;
constexpr double promised_seconds = 2, promised_median = 0.1;

double seconds_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

/// An error that a rank has reported.
struct Threw {
  Clock::time_point at;
  std::string kind;
  int rank;
  std::string words;

  [[nodiscard]] bool names(int other) const { return std::regex_search(words, std::regex{pdp::text("\\brank ", other, "\\b")}); }
};

/// The ranks of a job, started one by one.
class Ranks {
 public:
  /// `missing`: a rank that is not started.
  Ranks(const std::string& comm, int size, const std::vector<std::string>& what, const std::vector<Variable>& variables, int missing = -1) {
    const std::uint16_t port = launch_test::free_port();
    std::vector<std::string> arguments{comm};
    arguments.insert(arguments.end(), what.begin(), what.end());
    arguments.resize(4, "0");
    for (int rank = 0; rank < size; ++rank) {
      auto all = launch_test::rank_of(rank, size, port);
      all.insert(all.end(), variables.begin(), variables.end());
      jobs_.push_back(rank == missing ? nullptr : std::make_unique<Job>(arguments, all, PDP_TEST_PROGRAMS "/fault_program"));
    }
  }

  [[nodiscard]] int size() const { return static_cast<int>(jobs_.size()); }
  Job& operator[](int rank) { return *jobs_[static_cast<std::size_t>(rank)]; }

  void wait_until_joined() {
    try {
      for (const auto& each : jobs_) each->wait_for("joined");
    } catch (const std::runtime_error&) {
      std::string said;
      for (int rank = 0; rank < size(); ++rank) {
        static_cast<void>((*this)[rank].end());
        said += pdp::text("rank ", rank, ": ", (*this)[rank].out(), (*this)[rank].err(), '\n');
      }
      throw std::runtime_error{"not all ranks have joined:\n" + said};
    }
  }
  Clock::time_point signal(int rank, int number) {
    const auto now = Clock::now();
    (*this)[rank].signal(number);
    return now;
  }
  /// Returns the error that an ended rank has reported, if any.
  std::optional<Threw> threw(int rank) {
    const std::string& out = (*this)[rank].out();
    const std::size_t line = out.find("threw ");
    if (line == std::string::npos) return std::nullopt;
    static const std::regex form{"threw (\\d+) (\\w+) (-?\\d+) ([^\\n]*)"};
    std::smatch parts;
    if (!std::regex_search(out, parts, form)) return std::nullopt;
    return Threw{Clock::time_point{std::chrono::nanoseconds{std::stoll(parts[1])}}, parts[2], std::stoi(parts[3]), parts[4]};
  }

 private:
  std::vector<std::unique_ptr<Job>> jobs_;
};

/// Starts a job over each communicator. The jobs run at the same time, so they should wait most of the time.
std::vector<std::pair<std::string, Ranks>> jobs_of_all(int size, const std::vector<std::string>& what,
                                                       const std::vector<Variable>& variables, int missing = -1) {
  std::vector<std::pair<std::string, Ranks>> jobs;
  for (const char* comm : {"tcp", "shm", "default", "hosts"}) jobs.emplace_back(comm, Ranks{comm, size, what, variables, missing});
  return jobs;
}

/// The results of many kills.
struct Figures {
  int kills = 0, noticed = 0, wrong_rank = 0, hung = 0, orphans = 0, exit_code_0 = 0;
  int kills_at_start = 0, second_hand = 0;
  std::vector<double> seconds{};           // from a kill after all have joined until a survivor throws
  std::vector<double> seconds_at_start{};  // from a kill during the start until a survivor throws PeerLost; others wait for PDP_TIMEOUT
  std::vector<std::string> stories{};      // descriptions of unexpected outcomes

  static double largest(const std::vector<double>& of) { return of.empty() ? 0 : *std::ranges::max_element(of); }
  static double median(std::vector<double> of) {
    if (of.empty()) return 0;
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::ranges::nth_element(of, middle);
    return *middle;
  }
  [[nodiscard]] std::string json(const std::string& comm, int size) const {
    return pdp::text(R"({"campaign": "kill -9", "comm": ")", comm, R"(", "ranks": )", size, R"(, "kills": )", kills, R"(, "noticed": )",
                     noticed, R"(, "median_s": )", median(seconds), R"(, "max_s": )", largest(seconds), R"(, "wrong_rank": )", wrong_rank,
                     R"(, "hung": )", hung, R"(, "orphans": )", orphans, R"(, "exit_code_0": )", exit_code_0, R"(, "kills_at_start": )",
                     kills_at_start, R"(, "second_hand": )", second_hand, R"(, "median_at_start_s": )", median(seconds_at_start),
                     R"(, "max_at_start_s": )", largest(seconds_at_start), "}");
  }
};

/// Kills a rank of a new job and adds the outcome to `figures`. If `starting`, kills it at a random moment of the first `start` seconds,
/// when ranks are still joining. Otherwise kills it after all have joined, and sets `start` to the seconds that this took.
void kill_one(const std::string& comm, int size, bool starting, std::mt19937& random, double& start, Figures& figures) {
  const std::string seed = std::to_string(random() % 1'000'000);
  const auto begun = std::chrono::steady_clock::now();
  Ranks ranks{comm, size, {"traffic", seed}, {{"PDP_TIMEOUT", starting ? "5" : "60"}}};
  const auto started = Clock::now();
  const auto a_while = [&](double longest) {
    std::this_thread::sleep_for(std::chrono::duration<double>{std::uniform_real_distribution{0.0, longest}(random)});
  };
  if (starting) {
    a_while(start);
  } else {
    ranks.wait_until_joined();
    start = seconds_between(started, Clock::now());
    a_while(0.3);
  }
  const int victim = random() % 4 == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(size));
  const auto killed = ranks.signal(victim, SIGKILL);
  figures.kills += 1;
  figures.kills_at_start += starting ? 1 : 0;
  bool noticed = true;
  const auto story = [&](int rank, const std::string& what) {
    noticed = false;
    figures.stories.push_back(pdp::text(comm, ", seed ", seed, ", rank ", victim, " killed ", starting ? "at the start, " : "",
                                        seconds_between(begun, killed), " s after the beginning: rank ", rank, ' ', what));
  };
  for (int rank = 0; rank < size; ++rank) {
    int code = 0;
    try {
      code = ranks[rank].end(15s);
    } catch (const std::runtime_error&) {
      const auto left = ranks[rank].processes();
      const bool hangs = std::ranges::count(left, ranks[rank].launcher()) > 0;
      (hangs ? figures.hung : figures.orphans) += 1;
      story(rank, hangs ? "hangs" : "leaves a process behind");
      continue;
    }
    if (rank == victim) continue;
    if (code == 0) {
      figures.exit_code_0 += 1;
      story(rank, "ends with exit code 0");
    }
    const std::optional<Threw> threw = ranks.threw(rank);
    const double seconds = threw ? seconds_between(killed, threw->at) : 0;
    if (!threw) {
      story(rank, pdp::text("ends with exit code ", code, " and says: ", ranks[rank].out(), ranks[rank].err()));
    } else if (threw->kind == "lost" && threw->rank == victim) {
      (starting ? figures.seconds_at_start : figures.seconds).push_back(seconds);
    } else if (starting && !threw->names(victim) && (threw->rank >= 0 || threw->names(0))) {
      figures.second_hand += 1;  // joined after others, including the store's host, had given up, so it names only those
    } else if (!starting || !threw->names(victim)) {
      figures.wrong_rank += 1;
      story(rank, pdp::text("throws after ", seconds, " s: ", threw->kind, ' ', threw->rank, ' ', threw->words));
    }
  }
  figures.noticed += noticed ? 1 : 0;
}

/// Kills a rank of each of `kills` jobs, in every fourth job during its start.
Figures kill_many(const std::string& comm, int size, int kills) {
  std::mt19937 random{random_seed()};
  Figures figures;
  double start = 0.5;
  for (int kill = 0; kill < kills; ++kill) kill_one(comm, size, kill % 4 == 3, random, start, figures);
  return figures;
}

void check(const Figures& figures, double factor) {
  for (const std::string& each : figures.stories) UNSCOPED_INFO(each);
  CHECK(figures.noticed == figures.kills);
  CHECK(figures.wrong_rank == 0);
  CHECK(figures.hung == 0);
  CHECK(figures.orphans == 0);
  CHECK(Figures::median(figures.seconds) < factor * promised_median);
  CHECK(Figures::largest(figures.seconds) < factor * promised_seconds);
}

}  // namespace

TEST_CASE("Every survivor of 16 ranks names the rank that was killed at a random moment", "[launch][faults]") {
  // Two campaigns at the same time, as their ranks wait most of the time.
  const auto [one, other] = GENERATE(table<std::string, std::string>({{"tcp", "shm"}, {"default", "hosts"}}));
  constexpr int kills = PDP_TEST_SANITIZED ? 2 : 5;
  auto figures_of_other = std::async(std::launch::async, [&, comm = other] { return kill_many(comm, 16, kills); });
  check(kill_many(one, 16, kills), slack);
  check(figures_of_other.get(), slack);
}

TEST_CASE("200 kills of one of 16 ranks are noticed by every surviving rank", "[launch][faults][.long]") {
  const std::string comm = GENERATE(as<std::string>{}, "tcp", "shm", "default", "hosts");
  DYNAMIC_SECTION("over " << comm) {
    const Figures figures = kill_many(comm, 16, 200);
    std::printf("%s\n", figures.json(comm, 16).c_str());
    std::fflush(stdout);
    check(figures, slack);
  }
}

TEST_CASE("Every rank names the missing rank after PDP_TIMEOUT if one rank is never started", "[launch][faults]") {
  const int missing = GENERATE(0, 2);
  for (auto& [comm, ranks] : jobs_of_all(4, {"traffic"}, {{"PDP_TIMEOUT", "2"}}, missing))
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == missing) continue;
      CHECK(ranks[rank].end() != 0);
      const auto threw = ranks.threw(rank);
      REQUIRE(threw);
      INFO(comm << ", rank " << rank << ": " << threw->kind << ' ' << threw->words);
      CHECK((threw->kind == "late" || threw->kind == "lost"));
      CHECK(threw->names(missing));
    }
}

TEST_CASE("All waiting ranks report a stopped rank within two heartbeats, whichever rank they wait for", "[launch][faults]") {
  const std::string what = GENERATE(as<std::string>{}, "wait", "traffic");
  constexpr int size = 6;  // on two simulated hosts if the communicator is "hosts"
  const int victim = what == "wait" ? size - 1 : GENERATE(0, 2);
  auto jobs = jobs_of_all(size, {what, "5"}, {{"PDP_HEARTBEAT", "1"}});
  for (auto& [comm, ranks] : jobs) ranks.wait_until_joined();
  std::this_thread::sleep_for(200ms);
  std::vector<Clock::time_point> stopped;
  for (auto& [comm, ranks] : jobs) stopped.push_back(ranks.signal(victim, SIGSTOP));
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    auto& [comm, ranks] = jobs[job];
    for (int rank = 0; rank < size; ++rank) {
      if (rank == victim) continue;
      INFO(comm << ", " << what << ", rank " << rank);
      CHECK(ranks[rank].end() != 0);
      const auto threw = ranks.threw(rank);
      REQUIRE(threw);
      INFO(threw->kind << ' ' << threw->words);
      CHECK(threw->rank == victim);
      CHECK(seconds_between(stopped[job], threw->at) < slack * 2);
      CHECK(seconds_between(stopped[job], threw->at) > 0.5);
    }
  }
}

TEST_CASE("All ranks report a killed rank even if a child that it forked keeps its connections open", "[launch][faults]") {
  const std::string comm = GENERATE(as<std::string>{}, "tcp", "shm", "default", "hosts");
  constexpr int size = 6, victim = 2;
  Ranks ranks{comm, size, {"fork", std::to_string(victim)}, {{"PDP_HEARTBEAT", "600"}}};
  for (int rank = 0; rank < size; ++rank) ranks[rank].wait_for("forked");
  const auto killed = Clock::now();
  ranks[victim].signal(SIGKILL);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == victim) continue;
    INFO(comm << ", rank " << rank);
    CHECK(ranks[rank].end() != 0);
    const auto threw = ranks.threw(rank);
    REQUIRE(threw);
    INFO(threw->kind << ' ' << threw->words);
    CHECK(threw->rank == victim);
  }
  CHECK(seconds_between(killed, Clock::now()) < slack * promised_seconds);
}

namespace {

void check_done(const std::string& comm, Ranks& ranks) {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const int code = ranks[rank].end(300s);
    INFO(comm << ", rank " << rank << " of " << ranks.size() << ": " << ranks[rank].out());
    CHECK(code == 0);
    CHECK_THAT(ranks[rank].out(), EndsWith("done\n"));
  }
}

}  // namespace

TEST_CASE("Ranks wait for a rank that is stopped for less than a heartbeat", "[launch][faults]") {
  auto jobs = jobs_of_all(6, {"traffic", "7", "4"}, {{"PDP_HEARTBEAT", "4"}});
  for (auto& [comm, ranks] : jobs) ranks.wait_until_joined();
  for (const int victim : {2, 0}) {
    for (auto& [comm, ranks] : jobs) ranks.signal(victim, SIGSTOP);
    std::this_thread::sleep_for(1'000ms);
    for (auto& [comm, ranks] : jobs) ranks.signal(victim, SIGCONT);
    std::this_thread::sleep_for(200ms);
  }
  for (auto& [comm, ranks] : jobs) check_done(comm, ranks);
}

TEST_CASE("A job that is suspended for longer than deadline and heartbeat goes on when it is continued", "[launch][faults]") {
  auto jobs = jobs_of_all(4, {"late", "4"}, {{"PDP_HEARTBEAT", "3"}});
  for (auto& [comm, ranks] : jobs) ranks.wait_until_joined();
  for (const int signal : {SIGSTOP, SIGCONT}) {
    for (auto& [comm, ranks] : jobs)
      for (int rank = 0; rank < ranks.size(); ++rank) ranks.signal(rank, signal);
    if (signal == SIGSTOP) std::this_thread::sleep_for(6s);
  }
  for (auto& [comm, ranks] : jobs) check_done(comm, ranks);
}

// In the tests below, ranks compute on all cores for longer than a heartbeat and make no call meanwhile.

TEST_CASE("Ranks that compute for three heartbeats without a call are not reported as lost", "[launch][faults]") {
  for (auto& [comm, ranks] : jobs_of_all(4, {"compute", "3"}, {{"PDP_HEARTBEAT", "1"}})) check_done(comm, ranks);
}

TEST_CASE("64 ranks that compute on a busy machine are not reported as lost", "[launch][faults]") {
  for (const std::string comm : {"tcp", "shm", "default", "hosts"}) {
    if (PDP_TEST_SANITIZED && comm != "default") continue;
    Ranks ranks{comm, 64, {"compute", "3"}, {{"PDP_HEARTBEAT", "2"}}};
    check_done(comm, ranks);
  }
}

TEST_CASE("128 ranks that compute on a busy machine are not reported as lost", "[launch][faults][.long]") {
  const std::string comm = GENERATE(as<std::string>{}, "tcp", "shm", "default", "hosts");
  Ranks ranks{comm, 128, {"compute", "10"}, {{"PDP_HEARTBEAT", "2"}}};
  check_done(comm, ranks);
}
