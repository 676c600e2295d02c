#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pdp/launch/net/interface.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"
#include "data/files.hpp"
#include "launch/job.hpp"

using launch_test::free_port;
using launch_test::Job;
using launch_test::rank_of;
using launch_test::Variable;

namespace {

struct Ended {
  int code;
  std::string out, err;
};
Ended run(std::vector<std::string> arguments, const std::vector<Variable>& variables = {}) {
  Job job{std::move(arguments), variables};
  const int code = job.end();
  return {code, job.out(), job.err()};
}
bool one_line(const std::string& text) { return std::ranges::count(text, '\n') == 1; }

constexpr const char* nowhere = "192.0.2.1";  // RFC 5737: an address that no host has

/// An IPv4 address at which other hosts could reach this one. Is `nowhere` if there is none.
std::string address_in_a_network() {
  for (const auto& each : pdp::launch::interfaces())
    if (each.address.family() == AF_INET && !each.address.loopback()) return each.address.number();
  return nowhere;
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / pdp::text("pdp_run_", ::getpid());
  Folder() { std::filesystem::remove_all(path); }
  Folder(Folder&&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("launch::run starts one binary as one rank, as processes or as threads", "[launch][run]") {
  CHECK(run({"sum"}).out == "ranks 1 sum 1\n");
  CHECK(run({"sum", "--ranks", "1"}).out == "ranks 1 sum 1\n");
  CHECK(run({"sum", "--ranks", "4"}).out == "ranks 4 sum 10\n");
  CHECK(run({"sum", "--ranks=7", "--epochs", "3"}).out == "ranks 7 sum 28\n");
  CHECK(run({"sum", "--threads", "4"}).out == "ranks 4 sum 10\n");
  CHECK(run({"self"}).out == "ranks 1 sum 1\n");
  CHECK(run({"self", "--threads", "3"}).out == "ranks 3 sum 6\n");
  CHECK(run({"any"}).out == "ranks 1 sum 1\n");
  CHECK(run({"any", "--threads", "3"}).out == "ranks 3 sum 6\n");
  const Ended ended = run({"sum", "--ranks", "4"});
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
}

TEST_CASE("launch::run passes a program's own arguments on in order, without pdp's", "[launch][run]") {
  CHECK(run({"own"}).out == "ranks 1 own\n");
  CHECK(run({"own", "--rank", "3", "--ranks", "2", "file", "--threads-of-mine"}).out == "ranks 2 own --rank 3 file --threads-of-mine\n");
  CHECK(run({"own", "--threads=3", "a", "--", "--ranks", "2", "--help", "--"}).out == "ranks 3 own a --ranks 2 --help --\n");
}

TEST_CASE("launch::run prints the help of the program and of pdp's flags on one process", "[launch][run]") {
  const Ended own = run({"own", "--ranks", "2", "--help"});
  CHECK(own.code == 0);
  CHECK_THAT(own.out, StartsWith("launch_program: prints its arguments\n  --rank N  an own flag\n\nFlags of pdp:\n  --ranks N"));
  const Ended plain = run({"sum", "--help"});
  CHECK(plain.code == 0);
  CHECK_THAT(plain.out, StartsWith("Flags of pdp:\n  --ranks N"));
}

TEST_CASE("launch::run rejects a misspelt flag, and ends with 2 before it starts a rank", "[launch][run]") {
  for (const char* mode : {"sum", "own"}) {
    const Ended ended = run({mode, "--thread", "2"});
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_THAT(ended.err, Contains("'--thread' is no flag of this program; did you mean --threads?"));
  }
  CHECK(run({"sum", "--rank", "2"}).code == 2);
}

TEST_CASE("launch::run uses the communicator that the command line names, or else the first", "[launch][run]") {
  const auto [arguments, words] = GENERATE(table<std::vector<std::string>, std::string>({
      {{"--ranks", "4"}, "shm on 4 ranks, shm on 2\n"},
      {{"--ranks", "4", "--comm", "shm"}, "shm on 4 ranks, shm on 2\n"},
      {{"--ranks", "4", "--comm", "tcp"}, "tcp on 4 ranks, tcp on 2\n"},
      {{"--comm=tcp", "--ranks=3"}, "tcp on 3 ranks, tcp on 2\n"},
      {std::vector<std::string>{}, "shm on 1 ranks, shm on 1\n"},
      {{"--comm", "tcp"}, "tcp on 1 ranks, tcp on 1\n"},
      {{"--comm", "self"}, "self on 1 ranks, self on 1\n"},
      {{"--threads", "4"}, "thread on 4 ranks, thread on 2\n"},
      {{"--threads", "4", "--comm", "thread"}, "thread on 4 ranks, thread on 2\n"},
  }));
  std::vector<std::string> all{"several", "name"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Ended ended = run(all);
  CAPTURE(arguments);
  CHECK(ended.code == 0);
  CHECK(ended.out == words);
  CHECK(ended.err.empty());
  all[1] = "sum";
  CHECK_THAT(run(all).out, StartsWith("ranks ") && Contains(" sum "));
}

TEST_CASE("launch::run accepts --comm with the name of the only communicator", "[launch][run]") {
  CHECK(run({"sum", "--ranks", "4", "--comm", "tcp"}).out == "ranks 4 sum 10\n");
  CHECK(run({"sum", "--threads", "4", "--comm", "thread"}).out == "ranks 4 sum 10\n");
  CHECK(run({"self", "--comm", "thread"}).out == "ranks 1 sum 1\n");
  CHECK(run({"unnamed"}).out == "ranks 1 sum 1\n");
}

TEST_CASE("launch::run rejects an impossible --comm with exit code 2 and one line that says why", "[launch][run]") {
  const auto [arguments, words] = GENERATE(table<std::vector<std::string>, std::string>({
      {{"several", "sum", "--comm", "gloo"}, "--comm 'gloo': this program has shm, tcp and self\n"},
      {{"several", "sum", "--comm", "TCP", "--ranks", "2"}, "--comm 'TCP': this program has shm, tcp and self\n"},
      {{"sum", "--comm", "shm"}, "--comm 'shm': this program has tcp\n"},
      {{"unnamed", "--comm", "shm"}, "--comm 'shm': this program has a single communicator without a name; omit --comm\n"},
      {{"several", "sum", "--comm", "thread"}, "--comm thread connects threads of one process; pass --threads N to set their number\n"},
      {{"several", "sum", "--comm", "thread", "--ranks", "2"},
       "--comm thread connects threads of one process; pass --threads N to set their number\n"},
      {{"sum", "--comm", "thread"}, "--comm thread connects threads of one process; pass --threads N to set their number\n"},
      {{"several", "sum", "--threads", "2", "--comm", "tcp"},
       "--threads 2 and --comm 'tcp' exclude each other: threads use --comm thread; leave one of the two out\n"},
      {{"several", "sum", "--comm", "self", "--ranks", "2"},
       "--ranks: the ranks of this program's communicator run in one process; use --threads\n"},
      {{"several", "sum", "--comm"}, "--comm must be followed by the name of a communicator, as in --comm tcp\n"},
      {{"several", "sum", "--comm="}, "--comm must be followed by the name of a communicator, as in --comm tcp\n"},
  }));
  const Ended ended = run(arguments);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(ended.err == words);
}

TEST_CASE("A rank that fails ends the job, and its error is printed once, with its rank", "[launch][run]") {
  const auto [how, comm] = GENERATE(table<std::string, std::string>({
      {"--ranks", ""},
      {"--threads", ""},
      {"--ranks", "shm"},
      {"--ranks", "tcp"},
      {"--threads", "thread"},
  }));
  const auto run = [name = comm](std::vector<std::string> arguments) {
    if (!name.empty()) {
      arguments.insert(arguments.begin(), "several");
      arguments.insert(arguments.end(), {"--comm", name});
    }
    return ::run(std::move(arguments));
  };
  CAPTURE(how, comm);
  SECTION("one rank throws") {
    const Ended ended = run({"throw", how, "4"});
    CHECK(ended.code == 1);
    CHECK(ended.err == "rank 2: the file cannot be read\n");
  }
  SECTION("all ranks throw the same error") {
    const Ended ended = run({"throw_all", how, "4"});
    CHECK(ended.code == 1);
    CHECK(one_line(ended.err));
    CHECK_THAT(ended.err, StartsWith("rank ") && EndsWith(": the file cannot be read\n"));
  }
  SECTION("one rank throws an int, which is not a std::exception") {
    const Ended ended = run({"throw_int", how, "4"});
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, StartsWith("rank 2: ") && Contains("not a std::exception"));
  }
  SECTION("one rank throws UsageError") {
    const Ended ended = run({"throw_usage", how, "4"});
    CHECK(ended.code == 2);
    CHECK(ended.err == "rank 2: the flag is unknown\n");
  }
  SECTION("one rank makes a call that the others do not make") {
    const Ended ended = run({"extra", how, "4"});
    CHECK(ended.code == 1);
    CHECK(one_line(ended.err));
    CHECK_THAT(ended.err, Contains("different calls") && Contains("barrier on rank") && Contains("all_reduce of 1000 float64 on rank 2"));
  }
  SECTION("one rank returns a nonzero exit code, which is no error") {
    const Ended ended = run({"return", how, "4"});
    CHECK(ended.code == 9);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("A rank whose process exits or aborts ends the job, and the error names it", "[launch][run]") {
  const auto [mode, code, words] = GENERATE(table<std::string, int, std::string>({
      {"exit", 1, "rank 2: ended with exit code 7"},
      {"quit", 1, "rank 2: ended with exit code 0"},
      {"abort", 1, "rank 2: killed by signal 6 (SIGABRT)"},
  }));
  const auto arguments =
      GENERATE_COPY(values<std::vector<std::string>>({{mode, "--ranks", "4"}, {"several", mode, "--ranks", "4", "--comm", "shm"}}));
  CAPTURE(arguments);
  const Ended ended = run(arguments);
  CHECK(ended.code == code);
  CHECK_THAT(ended.err, Contains(words));
  CHECK(std::ranges::count(ended.err, '\n') <= 2);  // a sanitizer reports abort()
}

TEST_CASE("SIGKILL of one of four ranks at any moment ends the job with one line of error", "[launch][run][faults]") {
  const auto arguments =
      GENERATE(values<std::vector<std::string>>({{"loop", "--ranks", "4"}, {"several", "loop", "--ranks", "4", "--comm", "shm"}}));
  CAPTURE(arguments);
  std::mt19937 random{random_seed()};
  std::vector<double> seconds;
  for (int trial = 0; trial < 20; ++trial) {
    Job job{arguments};
    std::vector<pid_t> ranks;
    while (ranks.empty()) ranks = job.children();
    std::this_thread::sleep_for(std::chrono::microseconds{random() % (trial % 2 == 0 ? 4'000 : 60'000)});
    ranks = job.children();
    const pid_t victim = ranks.at(random() % ranks.size());
    const auto killed = std::chrono::steady_clock::now();
    ::kill(victim, SIGKILL);
    const int code = job.end();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - killed).count());
    INFO(job.err());
    CHECK(code == 1);
    CHECK(one_line(job.err()));
    CHECK_THAT(job.err(), StartsWith("rank ") && Contains("killed by signal 9 (SIGKILL)"));
  }
  std::ranges::nth_element(seconds, seconds.begin() + 10);
  CHECK(seconds[10] < 2);
}

TEST_CASE("PDP_DEADLINE bounds the calls of ranks that are processes or threads", "[launch][run][faults]") {
  const std::string how = GENERATE(as<std::string>{}, "--ranks", "--threads");
  Job job{{how == "--ranks" ? "several" : "threads", "late", how, "3"}, {{"PDP_DEADLINE", "1"}}};
  CHECK(job.end() == 1);
  CHECK_THAT(job.err(), Contains("waited 1000 ms for all_reduce") && Contains("the call needs a longer deadline (PDP_DEADLINE=SECONDS)"));
}

TEST_CASE("SIGINT and SIGTERM end all ranks without an error message", "[launch][run][faults]") {
  const auto [mode, signal, group, code] = GENERATE(table<std::string, int, bool, int>({
      {"loop", SIGINT, true, 130},
      {"loop", SIGINT, false, 130},
      {"sleep", SIGINT, true, 130},
      {"loop", SIGTERM, false, 143},
      {"sleep", SIGTERM, true, 143},
      {"stubborn", SIGTERM, false, 143},
  }));
  Job job{{mode, "--ranks", "3"}};
  job.wait_for("ready");
  group ? job.signal_group(signal) : job.signal(signal);
  CHECK(job.end() == code);
  CHECK(job.err().empty());
}

TEST_CASE("A job survives a signal that its parent process ignores or blocks", "[launch][run][faults]") {
  const auto [signal, blocked] = GENERATE(table<int, bool>({{SIGINT, false}, {SIGTERM, false}, {SIGHUP, false}, {SIGINT, true}}));
  const std::string file = pdp::text(std::filesystem::temp_directory_path().string(), "/pdp-ignored-", ::getpid());
  std::filesystem::remove(file);
  sigset_t one, mask_before;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  blocked ? ::pthread_sigmask(SIG_BLOCK, &one, &mask_before) : ::sigaction(signal, &ignore, &before);
  Job job{{"until", file, "--ranks", "3"}};
  blocked ? ::pthread_sigmask(SIG_SETMASK, &mask_before, nullptr) : ::sigaction(signal, &before, nullptr);
  job.wait_for("ready");
  job.signal_group(signal);
  std::ofstream{file} << "go on";
  CHECK(job.end() == 0);
  CHECK_THAT(job.out(), Contains("ranks 3 sum"));
  CHECK(job.err().empty());
  std::filesystem::remove(file);
}

TEST_CASE("Ranks end when their launcher is killed", "[launch][run][faults]") {
  const std::string mode = GENERATE(as<std::string>{}, "loop", "sleep", "stubborn");
  Job job{{mode, "--ranks", "3"}};
  job.wait_for("ready");
  job.signal(SIGKILL);
  CHECK(job.end() == -SIGKILL);
}

TEST_CASE("Ranks started one by one find each other, and each prints its own error", "[launch][run]") {
  const auto start = [](const std::vector<std::string>& arguments) {
    const std::uint16_t port = free_port();
    std::vector<std::unique_ptr<Job>> ranks;
    for (int rank = 2; rank >= 0; --rank) ranks.insert(ranks.begin(), std::make_unique<Job>(arguments, rank_of(rank, 3, port)));
    return ranks;
  };
  SECTION("launch::run connects them") {
    auto ranks = start({"sum"});
    for (const auto& each : ranks) CHECK(each->end() == 0);
    CHECK(ranks[0]->out() == "ranks 3 sum 6\n");
  }
  SECTION("launch::run connects them over the communicator of --comm") {
    const std::string comm = GENERATE("shm", "tcp");
    auto ranks = start({"several", "name", "--comm", comm});
    for (const auto& each : ranks) CHECK(each->end() == 0);
    CHECK(ranks[0]->out() == comm + " on 3 ranks, " + comm + " on 2\n");
  }
  SECTION("launch::join connects them") {
    auto ranks = start({"join"});
    for (const auto& each : ranks) {
      CHECK(each->end() == 0);
      CHECK(each->out() == "joined 3 sum 6\n");
    }
  }
  SECTION("one throws, so all fail") {
    auto ranks = start({"throw"});
    for (const auto& each : ranks) CHECK(each->end() == 1);
    CHECK(ranks[2]->err() == "rank 2: the file cannot be read\n");
    CHECK_THAT(ranks[0]->err(), StartsWith("rank 0: rank 2 has failed: the file cannot be read"));
  }
  SECTION("one is killed, so the others fail") {
    auto ranks = start({"loop"});
    ranks[0]->wait_for("ready");
    ranks[2]->signal(SIGKILL);
    CHECK(ranks[2]->end() == -SIGKILL);
    for (const std::size_t survivor : {std::size_t{0}, std::size_t{1}}) {
      CHECK(ranks[survivor]->end() == 1);
      CHECK_THAT(ranks[survivor]->err(), Contains("rank 2 is gone") && StartsWith("rank " + std::to_string(survivor)));
    }
  }
}

TEST_CASE("Two launchers form one job by address and port", "[launch][run]") {
  const std::string port = std::to_string(free_port());
  Job second{{"nodes", "2", "2", "1", "127.0.0.1", port}};
  Job first{{"nodes", "2", "2", "0", "127.0.0.1", port}};
  CHECK(first.end() == 0);
  CHECK(second.end() == 0);
  CHECK(first.out() == "ranks 4 sum 10\n");
  CHECK(run({"nodes", "1", "3", "0", "192.0.2.1", "8888"}).out == "ranks 3 sum 6\n");
}

TEST_CASE("Ranks find each other by the URL of --rendezvous or PDP_RENDEZVOUS", "[launch][run][rendezvous]") {
  const Folder folder;
  const std::string at_place = pdp::text("tcp://127.0.0.1:", free_port()), in_folder = pdp::text("file://", folder.path.string(), "/job");
  const auto [url, by_flag] =
      GENERATE_COPY(table<std::string, bool>({{at_place, true}, {at_place, false}, {in_folder, true}, {in_folder, false}}));
  CAPTURE(url, by_flag);
  std::vector<std::string> arguments{"sum"};
  std::vector<Variable> more;
  if (by_flag)
    arguments.insert(arguments.end(), {"--rendezvous", url});
  else
    more.emplace_back("PDP_RENDEZVOUS", url);

  SECTION("ranks started one by one") {
    std::vector<std::unique_ptr<Job>> ranks;
    for (int rank = 2; rank >= 0; --rank) {
      std::vector<Variable> variables{{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}};
      variables.insert(variables.end(), more.begin(), more.end());
      ranks.insert(ranks.begin(), std::make_unique<Job>(arguments, variables));
    }
    for (const auto& each : ranks) CHECK(each->end() == 0);
    CHECK(ranks[0]->out() == "ranks 3 sum 6\n");
  }
  SECTION("ranks started by the launcher") {
    arguments.insert(arguments.end(), {"--ranks", "3"});
    CHECK(run(arguments, more).out == "ranks 3 sum 6\n");
  }
  CHECK(std::filesystem::exists(folder.path / "job") == (url == in_folder));
}

TEST_CASE("PDP_JOB and PDP_ATTEMPT separate jobs that use the same rendezvous folder", "[launch][run][rendezvous]") {
  const Folder folder;
  std::vector<Variable> variables{{"PDP_RENDEZVOUS", pdp::text("file://", folder.path.string())}};
  CHECK(run({"sum", "--ranks", "2"}, variables).out == "ranks 2 sum 3\n");
  const Ended again = run({"sum", "--ranks", "2"}, variables);
  CHECK(again.code == 1);
  CHECK_THAT(again.err, Contains(folder.path.string()));
  variables.emplace_back("PDP_JOB", "17/a");
  CHECK(run({"sum", "--ranks", "2"}, variables).out == "ranks 2 sum 3\n");
  variables.emplace_back("PDP_ATTEMPT", "2");
  CHECK(run({"sum", "--ranks", "2"}, variables).out == "ranks 2 sum 3\n");
}

TEST_CASE("Ranks with a rendezvous folder join only if their PDP_SECRET is equal", "[launch][run][rendezvous][join]") {
  const Folder folder;
  const bool same = GENERATE(true, false);
  std::vector<std::unique_ptr<Job>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::make_unique<Job>(
        std::vector<std::string>{"sum"},
        std::vector<Variable>{{"RANK", std::to_string(rank)},
                              {"WORLD_SIZE", "2"},
                              {"PDP_TIMEOUT", same ? "60" : "2"},
                              {"PDP_RENDEZVOUS", pdp::text("file://", folder.path.string())},
                              {"PDP_SECRET", rank == 0 || same ? "sixteen bytes or more" : "another sixteen bytes"}}));
  for (const auto& each : ranks) CHECK((each->end() == 0) == same);
}

TEST_CASE("Two launchers form one job by a rendezvous URL", "[launch][run][rendezvous]") {
  const Folder folder;
  const bool at_place = GENERATE(true, false);
  const std::string url = at_place ? pdp::text("tcp://127.0.0.1:", free_port()) : pdp::text("file://", folder.path.string());
  Job second{{"meet", "2", "2", "1", url}};
  Job first{{"meet", "2", "2", "0", url}};
  CHECK(first.end() == 0);
  CHECK(second.end() == 0);
  CHECK(first.out() == "ranks 4 sum 10\n");
}

TEST_CASE("Ranks find each other at an IPv6 address of MASTER_ADDR or PDP_RENDEZVOUS", "[launch][run][rendezvous]") {
  const auto here = pdp::launch::interfaces();
  if (std::ranges::none_of(here, [](const auto& each) { return each.address.number() == "::1"; })) {
    WARN("this machine has no ::1");
    return;
  }
  const bool by_url = GENERATE(false, true);
  const std::uint16_t port = pdp::launch::TcpStoreServer{"::1"}.port();
  std::vector<std::unique_ptr<Job>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    auto variables = rank_of(rank, 3, port);
    if (by_url)
      variables.emplace_back("PDP_RENDEZVOUS", pdp::text("tcp://[::1]:", port));
    else
      variables[3].second = "::1";
    ranks.push_back(std::make_unique<Job>(std::vector<std::string>{"sum"}, variables));
  }
  for (const auto& each : ranks) CHECK(each->end() == 0);
  CHECK(ranks[0]->out() == "ranks 3 sum 6\n");
}

TEST_CASE("PDP_INTERFACE takes a name or an address, and the error for a wrong one lists the interfaces", "[launch][run][rendezvous]") {
  for (const std::string& wanted : {std::string{"lo"}, std::string{"127.0.0.1"}, address_in_a_network()})
    if (wanted != nowhere) CHECK(run({"sum", "--ranks", "3"}, {{"PDP_INTERFACE", wanted}}).out == "ranks 3 sum 6\n");
  const Ended ended = run({"sum", "--ranks", "3"}, {{"PDP_INTERFACE", "eth77"}});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Contains("PDP_INTERFACE is 'eth77'") && Contains("lo (127.0.0.1)"));
}

TEST_CASE("A rank whose job cannot start exits with code 1 and the reason", "[launch][run]") {
  const std::uint16_t port = free_port();
  auto variables = rank_of(1, 3, port);
  variables.emplace_back("PDP_TIMEOUT", "0.3");
  SECTION("the store is missing") {
    const Ended ended = run({"sum"}, variables);
    CHECK(ended.code == 1);
    CHECK(one_line(ended.err));
    CHECK_THAT(ended.err, StartsWith("rank 1: ") && Contains("127.0.0.1, port " + std::to_string(port)) && Contains("Connection refused"));
  }
  SECTION("the other ranks are missing") {
    variables[0].second = "0";
    const Ended ended = run({"sum"}, variables);
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, StartsWith("rank 0: ") && Contains("rank 1, rank 2"));
  }
  SECTION("the port is taken") {
    const pdp::launch::TcpStoreServer other{"127.0.0.1", port};
    variables[0].second = "0";
    const Ended ended = run({"sum"}, variables);
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, Contains("port " + std::to_string(port)) && Contains("taken by another program"));
  }
}

namespace {

/// Starts rank `odd` of three after the others, and checks that all of them print why it cannot join.
template <class StartRank>
void tell_of(int odd, const StartRank& start, const std::string& why) {
  std::map<int, std::unique_ptr<Job>> ranks;
  for (int rank = 0; rank < 3; ++rank)
    if (rank != odd) ranks[rank] = start(rank);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  ranks[odd] = start(odd);
  for (const auto& [rank, each] : ranks) {
    CAPTURE(odd, rank);
    CHECK(each->end() != 0);
    CHECK_THAT(each->err(), Contains(why));
    if (rank != odd) CHECK_THAT(each->err(), Contains(pdp::text("rank ", odd, " has failed")));
  }
}

}  // namespace

TEST_CASE("All ranks fail with the reason if one rank cannot join, long before PDP_TIMEOUT", "[launch][run]") {
  const std::uint16_t port = free_port();
  const auto start = [port](int rank, std::vector<std::string> arguments, const std::vector<Variable>& more = {}) {
    auto variables = rank_of(rank, 3, port);
    variables.emplace_back("PDP_TIMEOUT", "600");  // longer than the test waits for a job's end
    variables.insert(variables.end(), more.begin(), more.end());
    return std::make_unique<Job>(std::move(arguments), variables);
  };
  SECTION("one rank has another communicator") {
    const int odd = GENERATE(0, 2);
    std::vector<std::unique_ptr<Job>> ranks;
    for (int rank = 0; rank < 3; ++rank) ranks.push_back(start(rank, {"several", "sum", "--comm", rank == odd ? "shm" : "tcp"}));
    for (const auto& each : ranks) {
      CHECK(each->end() == 1);
      CHECK_THAT(each->err(), Contains("uses the communicator ") && Contains("tcp") && Contains("shm") && Contains("--comm"));
    }
  }
  SECTION("one rank has a wrong PDP_INTERFACE") {
    const int odd = GENERATE(0, 1);
    std::vector<std::unique_ptr<Job>> ranks;
    for (int rank = 2; rank >= 0; --rank) {
      std::vector<Variable> more;
      if (rank == odd) more.emplace_back("PDP_INTERFACE", "eth77");
      ranks.push_back(start(rank, {"sum"}, more));
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
    for (const auto& each : ranks) {
      CHECK(each->end() != 0);
      CHECK_THAT(each->err(), Contains("PDP_INTERFACE is 'eth77'"));
    }
  }
  SECTION("one rank has a wrong time limit or PDP_INSECURE") {
    const int odd = GENERATE(0, 1);
    const Variable wrong = GENERATE(values<Variable>({{"PDP_HEARTBEAT", "0.5"}, {"PDP_DEADLINE", "x"}, {"PDP_INSECURE", "perhaps"}}));
    const std::string mode = GENERATE("sum", "join");
    tell_of(
        odd, [&](int rank) { return start(rank, {mode}, rank == odd ? std::vector<Variable>{wrong} : std::vector<Variable>{}); },
        wrong.first);
  }
  SECTION("rank 0 has an unknown communicator") {
    tell_of(
        0,
        [&](int rank) {
          return start(rank, {"several", "sum", "--comm", rank == 0 ? "carrier-pigeon" : "tcp"});
        },
        "carrier-pigeon");
  }
  SECTION("one rank has a malformed command line") {
    tell_of(
        1,
        [&](int rank) {
          return start(rank, {"sum", rank == 1 ? "--ranks=none" : "--epochs"});
        },
        "--ranks must be a number");
  }
  SECTION("one rank has too small a stack") {
    const std::string program = PDP_TEST_PROGRAMS "/launch_program";
    tell_of(
        1,
        [&](int rank) -> std::unique_ptr<Job> {
          if (rank != 1) return start(rank, {"sum"});
          auto variables = rank_of(1, 3, port);
          return std::make_unique<Job>(std::vector<std::string>{"-c", "ulimit -s 256; exec \"$0\" sum", program}, variables, "/bin/sh");
        },
        "the stack of this process is limited");
  }
  SECTION("one rank has a wrong PDP_HEARTBEAT, and the store is a folder") {
    const Folder folder;
    const int odd = GENERATE(0, 1);
    tell_of(
        odd,
        [&](int rank) {
          std::vector<Variable> more{{"PDP_RENDEZVOUS", "file://" + folder.path.string()}};
          if (rank == odd) more.emplace_back("PDP_HEARTBEAT", "0.5");
          return start(rank, {"sum"}, more);
        },
        "PDP_HEARTBEAT");
  }
  SECTION("one rank has a wrong PDP_HEARTBEAT, and the ports are derived from the job") {
    const int odd = GENERATE(0, 1);
    tell_of(
        odd,
        [&](int rank) {
          std::vector<Variable> more{{"TORCHELASTIC_RUN_ID", "run"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
          if (rank == odd) more.emplace_back("PDP_HEARTBEAT", "0.5");
          return start(rank, {"sum"}, more);
        },
        "PDP_HEARTBEAT");
  }
  SECTION("one rank has an unknown communicator") {
    const auto rank_0 = start(0, {"several", "sum", "--comm", "tcp"}), rank_1 = start(1, {"several", "sum", "--comm", "tcp"});
    const auto rank_2 = start(2, {"several", "sum", "--comm", "carrier-pigeon"});
    CHECK(rank_2->end() == 2);
    for (const auto* each : {&rank_0, &rank_1}) {
      CHECK((*each)->end() == 1);
      CHECK_THAT((*each)->err(), Contains("rank 2 has failed") && Contains("carrier-pigeon"));
    }
  }
}

TEST_CASE("A launcher that cannot start its ranks tells the ranks of other machines the reason", "[launch][run]") {
  const std::string port = std::to_string(free_port());
  const int odd = GENERATE(0, 1);
  const Variable wrong = GENERATE(values<Variable>({{"PDP_HEARTBEAT", "0.5"}, {"PDP_DEADLINE", "x"}}));
  const auto start = [&](int node) {
    std::vector<Variable> variables{{"PDP_TIMEOUT", "600"}, {"PDP_SECRET", "sixteen bytes or more"}};
    if (node == odd) variables.push_back(wrong);
    return std::make_unique<Job>(std::vector<std::string>{"nodes", "2", "2", std::to_string(node), "127.0.0.1", port}, variables);
  };
  const auto other = start(1 - odd);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  const auto failing = start(odd);
  CHECK(failing->end() == 2);
  CHECK(other->end() == 1);
  CHECK_THAT(other->err(), Contains(pdp::text("the launcher of machine ", odd)) && Contains(wrong.first));
}

TEST_CASE("The launcher tells the other ranks that a rank has ended before it joined", "[launch][run]") {
  SECTION("on one machine") {
    const Ended ended = run({"early", "--ranks", "3"}, {{"PDP_TIMEOUT", "600"}});
    CHECK(ended.code == 1);
    CHECK(one_line(ended.err));
    CHECK_THAT(ended.err, StartsWith("rank 1: ended with exit code 0 in the middle of the job"));
  }
  SECTION("on one machine, with a rendezvous folder") {
    const Folder folder;
    const Ended ended = run({"early", "--ranks", "3", "--rendezvous", "file://" + folder.path.string()}, {{"PDP_TIMEOUT", "600"}});
    CHECK(ended.code == 1);
    CHECK_THAT(ended.err, StartsWith("rank 1: ended with exit code 0 in the middle of the job"));
  }
  SECTION("on two machines") {
    const std::string lost = GENERATE(as<std::string>{}, "1", "2");
    const std::string port = std::to_string(free_port());
    const std::vector<Variable> variables{{"PDP_TIMEOUT", "600"}, {"PDP_SECRET", "sixteen bytes or more"}};
    const auto start = [&](int node) {
      return std::make_unique<Job>(std::vector<std::string>{"nodes", "2", "2", std::to_string(node), "127.0.0.1", port, lost}, variables);
    };
    const int node = lost == "1" ? 0 : 1;
    const auto other = start(1 - node);
    std::this_thread::sleep_for(std::chrono::seconds{1});
    const auto losing = start(node);
    for (Job* each : {other.get(), losing.get()}) {
      CHECK(each->end() == 1);
      CHECK_THAT(each->err(), Contains("rank " + lost) && Contains("ended with exit code 0"));
    }
  }
}

TEST_CASE("Ranks raise their soft limit of descriptors, or report a hard limit that is too low", "[launch][run]") {
  const std::string program = PDP_TEST_PROGRAMS "/launch_program";
  const auto run_limited = [&](const std::string& limit, const std::string& comm) {
    Job job{
        {"-c", "ulimit " + limit + "; exec \"$0\" several sum --ranks 12 --comm " + comm, program}, {{"PDP_TIMEOUT", "600"}}, "/bin/sh"};
    const int code = job.end();
    return Ended{code, job.out(), job.err()};
  };
  const std::string comm = GENERATE(as<std::string>{}, "tcp", "shm");
  const Ended soft = run_limited("-Sn 16", comm);
  INFO(soft.err);
  CHECK(soft.code == 0);
  for (const int limit : {16, 20, 24, 28, 32}) {
    const Ended hard = run_limited(pdp::text("-n ", limit), comm);
    INFO(comm << ' ' << limit << ": " << hard.err);
    if (hard.code == 0) continue;  // it was enough
    CHECK(hard.code == 1);
    CHECK_THAT(hard.err, Contains("Too many open files") && Contains(pdp::text("may have ", limit, " open files")));
  }
  CHECK(run_limited("-n 16", comm).code == 1);
}

TEST_CASE("Ranks started one by one join only if all have PDP_SECRET, and never print it", "[launch][run][join]") {
  const std::uint16_t port = free_port();
  std::vector<std::unique_ptr<Job>> jobs;
  const Variable secret{"PDP_SECRET", "sixteen bytes or more"};
  const bool all = GENERATE(true, false);
  for (int rank = 0; rank < 3; ++rank) {
    auto variables = rank_of(rank, 3, port);
    variables.emplace_back("PDP_TIMEOUT", all ? "60" : "2");
    if (all || rank != 1) variables.push_back(secret);
    jobs.push_back(std::make_unique<Job>(std::vector<std::string>{"sum"}, variables));
  }
  for (auto& job : jobs) CHECK((job->end() == 0) == all);
  if (all) CHECK(jobs[0]->out() == "ranks 3 sum 6\n");
  if (!all) CHECK_THAT(jobs[1]->err(), Contains("requires a secret, but this rank has none"));
  for (auto& job : jobs) CHECK_THAT(job->out() + job->err(), !Contains(secret.second));
}

TEST_CASE("A store that other hosts can reach requires a secret, munge or PDP_INSECURE=1", "[launch][run][join]") {
  const std::string address = address_in_a_network();
  const auto start = [&](const std::vector<Variable>& more) {
    const std::uint16_t port = free_port();
    std::vector<std::unique_ptr<Job>> jobs;
    for (int rank = 0; rank < 2; ++rank) {
      auto variables = rank_of(rank, 2, port);
      variables[3].second = address;
      variables.insert(variables.end(), more.begin(), more.end());
      jobs.push_back(std::make_unique<Job>(std::vector<std::string>{"sum"}, variables));
    }
    std::vector<Ended> ended;
    for (auto& job : jobs) {
      const int code = job->end();
      ended.push_back({code, job->out(), job->err()});
    }
    return ended;
  };
  for (const Ended& rank : start({})) {
    CHECK(rank.code == 2);
    CHECK(one_line(rank.err));
    CHECK_THAT(rank.err, Contains(address) && Contains("PDP_SECRET_FILE") && Contains("munge") && Contains("PDP_INSECURE=1"));
  }
  if (address == nowhere) {
    WARN("this machine has no address in a network");
    return;
  }
  for (const Variable& way :
       {Variable{"PDP_INSECURE", "1"}, Variable{"PDP_SECRET", "sixteen bytes or more"}, Variable{"LOCAL_WORLD_SIZE", "2"}})
    CHECK(start({way}).at(0).out == "ranks 2 sum 3\n");
}

TEST_CASE("The launcher draws a secret for each job and passes it only in its ranks' environment", "[launch][run][join]") {
  const auto secret_of = [](pid_t process) {
    const std::string environment = launch_test::contents(pdp::text("/proc/", process, "/environ"));
    const std::string name{"\0PDP_SECRET=", 12};
    const std::size_t at = environment.find(name);
    return at == std::string::npos ? std::string{} : std::string{environment.c_str() + at + name.size()};
  };
  std::string earlier;
  for (int i = 0; i < 2; ++i) {
    Job job{{"sleep", "--ranks", "3"}};
    job.wait_for("ready");
    CHECK(secret_of(job.launcher()).empty());
    const std::string secret = secret_of(job.children().at(0));
    CHECK(secret.size() == 64);
    CHECK(secret != earlier);
    earlier = secret;
    for (const pid_t rank : job.children()) {
      CHECK(secret_of(rank) == secret);
      CHECK(launch_test::contents(pdp::text("/proc/", rank, "/cmdline")).find(secret) == std::string::npos);
    }
    job.signal(SIGTERM);
    job.end();
    CHECK_THAT(job.out() + job.err(), !Contains(secret));
  }
}

TEST_CASE("Each launcher of a job on two machines exits with code 2 if there is no secret", "[launch][run][join]") {
  for (const char* node : {"0", "1"}) {
    const Ended ended = run({"nodes", "2", "1", node, "192.0.2.1", "8888"});
    CHECK(ended.code == 2);
    CHECK(one_line(ended.err));
    CHECK_THAT(ended.err, Contains("192.0.2.1") && Contains("PDP_SECRET_FILE"));
  }
}

TEST_CASE("A wrong command line or environment exits with code 2 and one line of error", "[launch][run]") {
  const auto [arguments, variables, words] = GENERATE(table<std::vector<std::string>, std::vector<Variable>, std::string>({
      {{"sum", "--ranks", "0"}, {}, "--ranks must be"},
      {{"sum", "--ranks", "-3"}, {}, "--ranks must be"},
      {{"sum", "--ranks=many"}, {}, "'many'"},
      {{"sum", "--ranks", "2", "--threads", "2"}, {}, "exclude each other"},
      {{"sum", "--ranks", "3"}, rank_of(0, 2, 1), "requests 3 ranks, but a launcher has started this process as one of 2 ranks"},
      {{"sum", "--threads", "2"}, rank_of(0, 2, 1), "requests 2 threads, but a launcher has started this process as one of 2 ranks"},
      {{"sum"}, {{"RANK", "0"}}, "WORLD_SIZE is not"},
      {{"sum"}, rank_of(2, 2, 1), "RANK is 2, but WORLD_SIZE is 2"},
      {{"sum", "--ranks", "2"}, {{"PDP_TIMEOUT", "0"}}, "PDP_TIMEOUT"},
      {{"sum", "--ranks", "2"}, {{"PDP_RENDEZVOUS", "http://a"}}, "PDP_RENDEZVOUS is 'http://a'"},
      {{"sum", "--rendezvous", "tcp://a:0"}, {}, "the port of --rendezvous"},
      {{"self", "--ranks", "2"}, {}, "use --threads"},
      {{"self"}, rank_of(0, 2, 1), "use --threads"},
  }));
  const Ended ended = run(arguments, variables);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(one_line(ended.err));
  CHECK_THAT(ended.err, Contains(words));
}

TEST_CASE("Ranks of torchrun find each other although its agent listens at MASTER_PORT", "[launch][run]") {
  const pdp::launch::TcpStoreServer agent;
  const auto ports = pdp::launch::ports_of_job(pdp::text("torchrun run ", agent.port()));
  std::unique_ptr<pdp::launch::TcpStoreServer> another;
  if (GENERATE(false, true)) try {  // another program listens at the first of the derived ports
      another = std::make_unique<pdp::launch::TcpStoreServer>("127.0.0.1", ports.front());
    } catch (const pdp::launch::PortTaken&) {
    }
  std::vector<std::unique_ptr<Job>> ranks;
  for (int rank = 2; rank >= 0; --rank) {
    std::vector<Variable> variables = rank_of(rank, 3, agent.port());
    variables.insert(variables.end(), {{"LOCAL_WORLD_SIZE", "3"},
                                       {"GROUP_WORLD_SIZE", "1"},
                                       {"TORCHELASTIC_RUN_ID", "run"},
                                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
    ranks.insert(ranks.begin(), std::make_unique<Job>(std::vector<std::string>{"sum"}, variables));
  }
  for (const auto& each : ranks) CHECK(each->end() == 0);
  CHECK(ranks[0]->out() == "ranks 3 sum 6\n");
}

TEST_CASE("Ranks of mpirun on one machine find each other without any setting", "[launch][run]") {
  const auto [name, flags] = GENERATE(table<std::string, std::vector<std::string>>({
      {"mpirun.mpich", {}},
      {"mpirun.openmpi", {"--allow-run-as-root", "--oversubscribe"}},
  }));
  std::string program;
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/"})
    if (std::filesystem::exists(folder + name)) program = folder + name;
  if (program.empty()) {
    WARN("skipped: there is no " << name);
    return;
  }
  const std::string ranks = PDP_TEST_PROGRAMS "/launch_program";
  std::vector<std::string> arguments = flags;
  arguments.insert(arguments.end(), {"-n", "3", ranks, "sum"});
  // Open MPI's mpirun may fail if another one makes the same folder at the same time.
  const std::array<files::TemporaryFolder, 3> folders;
  std::vector<std::unique_ptr<Job>> jobs;
  for (const auto& folder : folders)
    jobs.push_back(std::make_unique<Job>(arguments, std::vector<Variable>{{"TMPDIR", folder.path().string()}}, program));
  for (const auto& each : jobs) {
    CHECK(each->end() == 0);
    CHECK(each->out() == "ranks 3 sum 6\n");
  }
}

TEST_CASE("A process with PMIX_RANK but without a size exits with code 2 and says what to set", "[launch][run]") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"sum"}, {"sum", "--threads", "2"}, {"sum", "--ranks", "2"}}) {
    const Ended ended = run(arguments, {{"PMIX_RANK", "1"}});
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK_THAT(ended.err, StartsWith("PMIX_RANK is '1'") && Contains("set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"));
    CHECK(one_line(ended.err));
  }
}
