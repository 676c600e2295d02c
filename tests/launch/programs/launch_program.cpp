// A program for the tests of launch::run. Its first argument is a mode (see main and act). In the modes "several" and "threads", which
// choose other communicators, the mode of the ranks is the second argument.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/process/cores.hpp>
#include <pdp/launch/run.hpp>

namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

template <class World>
double sum(World& world) {
  std::vector<double> values(1000, world.rank() + 1.0);
  world.all_reduce(values, pdp::comm::Sum{});
  return values.back();
}

/// Uses 400 KiB of stack, as a large matrix product does.
[[gnu::noinline]] double use_stack(double value) {
  std::array<volatile double, 50 * 1024> values;
  for (auto& each : values) each = value;
  return values[0];
}

/// Carries out a mode on one rank. In most modes rank 2 fails while the other ranks go on.
template <class World>
int act(const std::string& mode, World& world) {
  const bool culprit = world.rank() == 2;
  if (mode == "stubborn") ::signal(SIGTERM, SIG_IGN);
  if (mode == "sum") {
    const double total = sum(world);
    if (world.rank() == 0) say(pdp::text("ranks ", world.size(), " sum ", static_cast<int>(total)));
    return 0;
  }
  if (mode == "stack") {
    std::vector<double> used{use_stack(world.rank() + 1.0)};
    std::thread{[&used] { used.front() = use_stack(used.front()); }}.join();  // on another thread, like a dataset that prefetches
    world.all_reduce(used, pdp::comm::Sum{});
    if (world.rank() == 0) say(pdp::text("ranks ", world.size(), " sum ", static_cast<int>(used.front())));
    return 0;
  }
  if (mode == "cores") {
    pdp::launch::Cores own;
    ::sched_getaffinity(0, sizeof own, &own);
    say(pdp::text("rank ", world.rank(), " on ", pdp::launch::describe(own)));
    return 0;
  }
  if constexpr (requires { world.name(); })
    if (mode == "name") {
      auto pair = world.split(world.rank() / 2, 0);
      if (world.rank() == 0) say(pdp::text(world.name(), " on ", world.size(), " ranks, ", pair.name(), " on ", pair.size()));
      return 0;
    }
  sum(world);
  if (mode == "throw" && culprit) throw pdp::FileError{"the file cannot be read"};
  if (mode == "throw_all") throw pdp::FileError{"the file cannot be read"};
  if (mode == "throw_int" && culprit) throw 5;
  if (mode == "throw_usage" && culprit) throw pdp::UsageError{"the flag is unknown"};
  if (mode == "late" && culprit) std::this_thread::sleep_for(std::chrono::seconds{3});
  if (mode == "exit" && culprit) std::exit(7);
  if (mode == "quit" && culprit) std::exit(0);
  if (mode == "abort" && culprit) std::abort();
  if (mode == "return") return culprit ? 9 : 0;
  if (mode == "extra" && culprit) sum(world);
  if (mode == "extra") return 0;
  if (mode == "sleep" || mode == "stubborn") {
    world.barrier();
    if (world.rank() == 0) say("ready");
    while (true) std::this_thread::sleep_for(std::chrono::hours{1});
  }
  if (mode == "loop" && world.rank() == 0) say("ready");
  while (true) sum(world);
}

/// Repeats an all-reduce until the file exists and all ranks have learnt from rank 0 that it does.
template <class World>
int add_until(const std::string& file, World& world) {
  sum(world);
  if (world.rank() == 0) say("ready");
  for (double there = 0; there == 0;) {
    there = world.rank() == 0 && std::filesystem::exists(file) ? 1 : 0;
    world.all_reduce(std::span{&there, 1}, pdp::comm::Sum{});
  }
  return act("sum", world);
}

/// A communicator without a name.
class Unnamed : public pdp::comm::BasicCommunicator<pdp::comm::Self::Erased> {
 public:
  Unnamed() : BasicCommunicator{pdp::comm::Self{}.release()} {}
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "sum";
  if (mode == "join") try {
      auto world = pdp::launch::join<pdp::comm::Tcp>();
      say(pdp::text("joined ", world.size(), " sum ", static_cast<int>(sum(world))));
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 3;
    }
  if (mode == "early") {  // rank 1 ends before it joins
    const char* rank = std::getenv("RANK");
    if (rank != nullptr && std::string{rank} == "1") return 0;
    return pdp::launch::run<pdp::comm::Tcp>(argc, argv, [](auto& world) { return act("sum", world); });
  }
  if (mode == "several") {
    const std::string act_of_several = argv[2];
    return pdp::launch::run<pdp::comm::Shm, pdp::comm::Tcp, pdp::comm::Self>(
        argc, argv, [&](pdp::comm::Any& world) { return act(act_of_several, world); });
  }
  if (mode == "own") {  // prints the arguments that are not pdp's
    return pdp::launch::run<pdp::comm::Shm>(argc, argv, {.help = "launch_program: prints its arguments\n  --rank N  an own flag\n"},
                                            [](auto& world, const pdp::launch::Arguments& arguments) {
                                              std::string words = pdp::text("ranks ", world.size());
                                              for (const std::string& each : arguments) words += ' ' + each;
                                              if (world.rank() == world.size() - 1) say(words);
                                            });
  }
  if (mode == "unnamed") return pdp::launch::run<Unnamed>(argc, argv, [](Unnamed& world) { return act("sum", world); });
  if (mode == "default") return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) { return act("sum", world); });
  if (mode == "until") return pdp::launch::run<pdp::comm::Tcp>(argc, argv, [&](auto& world) { return add_until(argv[2], world); });
  const auto act_on = [&](auto& world) { return act(mode, world); };
  if (mode == "nodes") {  // arguments: nodes, processes on each, this node, address, port; a rank that ends before it joins, if any
    const pdp::launch::Options options{.nodes = std::atoi(argv[2]),
                                       .node_rank = std::atoi(argv[4]),
                                       .processes_per_node = std::atoi(argv[3]),
                                       .address = argv[5],
                                       .port = std::atoi(argv[6])};
    const char* rank = std::getenv("RANK");
    if (argc > 7 && rank != nullptr && std::string{rank} == argv[7]) return 0;
    return pdp::launch::run<pdp::comm::Tcp>(options, [](auto& world) { return act("sum", world); });
  }
  if (mode == "meet") {  // arguments: nodes, processes on each, this node, URL
    const pdp::launch::Options options{
        .nodes = std::atoi(argv[2]), .node_rank = std::atoi(argv[4]), .processes_per_node = std::atoi(argv[3]), .rendezvous = argv[5]};
    return pdp::launch::run<pdp::comm::Tcp>(options, [](auto& world) { return act("sum", world); });
  }
  if (mode == "threads") {
    const std::string act_of_threads = argv[2];
    return pdp::launch::run<pdp::comm::Thread>(argc, argv, [&](auto& world) { return act(act_of_threads, world); });
  }
  if (mode == "self") return pdp::launch::run<pdp::comm::Thread>(argc, argv, [](auto& world) { return act("sum", world); });
  if (mode == "any") return pdp::launch::run<pdp::comm::Self>(argc, argv, [](pdp::comm::Any& world) { return act("sum", world); });
  return pdp::launch::run<pdp::comm::Tcp>(argc, argv, act_on);
}
