// A program for the fault campaigns: one rank, which the test starts. It prints a line when it has joined, and one with the time and text
// of the error that it throws. Its arguments: a communicator, a mode, and two numbers.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/join.hpp>

namespace {

namespace comm = pdp::comm;
using Clock = std::chrono::steady_clock;  // the clock that all processes of a host share

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// The default communicator, in which every four consecutive ranks are on a simulated host of their own.
class OnHosts : public comm::Default {
 public:
  OnHosts(comm::Default&& group) : comm::Default{std::move(group)} {}
  static OnHosts connect(comm::StoreView store, int rank, int size, comm::TimePoint deadline) {
    return comm::Default::connect(store, rank, size, deadline, pdp::text("host ", rank / 4));
  }
};

/// Makes random calls of all kinds, with pauses between them. All ranks draw the calls from the same seed, so they make the same ones. Ends
/// when rank 0 finds that `seconds` have passed. Never ends if `seconds` is 0.
template <class World>
void traffic(World& world, unsigned seed, int seconds) {
  std::mt19937 common{seed}, own{seed + static_cast<unsigned>(world.rank()) + 1};
  auto row = world.split(world.rank() / 4, 0), column = world.split(world.rank() % 4, 0);
  std::vector<float> values(50'000);
  std::vector<int> order(static_cast<std::size_t>(world.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto until = Clock::now() + std::chrono::seconds{seconds};
  for (int round = 1;; ++round) {
    const std::span some{values.data(), common() % 8 == 0 ? values.size() : 1 + common() % 500};
    switch (common() % 7) {
      case 0:
      case 1:
        world.all_reduce(some, comm::Sum{});
        break;
      case 2:
        std::this_thread::sleep_for(std::chrono::milliseconds{5 + own() % 46});
        break;
      case 3: {  // pairs of ranks
        std::shuffle(order.begin(), order.end(), common);
        const auto place = static_cast<std::size_t>(std::ranges::find(order, world.rank()) - order.begin());
        if ((place ^ 1) == order.size()) break;
        if (place % 2 == 0)
          world.send(some, order[place ^ 1]);
        else
          world.recv(some, order[place ^ 1]);
        break;
      }
      case 6:
        row.all_reduce(some, comm::Max{});
        break;
      case 4:
        static_cast<void>(world.split(world.rank() % 2, 0));
        break;
      case 5:
        column.broadcast(some, static_cast<int>(common() % static_cast<unsigned>(column.size())));
        break;
    }
    if (seconds == 0 || round % 8 != 0) continue;
    int go_on = Clock::now() < until ? 1 : 0;
    world.broadcast(std::span{&go_on, 1}, 0);
    if (go_on == 0) return;
  }
}

/// Waits for a message that is never sent: on the last rank from rank 0, on the others from the next rank. The last rank but one only calls
/// progress(). So the waits form no cycle, and no rank waits for the last one.
template <class World>
void wait_for_nothing(World& world) {
  int nothing = 0;
  const int idle = world.size() - 2;
  while (world.rank() == idle) {
    world.progress();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  world.recv(std::span{&nothing, 1}, world.rank() > idle ? 0 : world.rank() + 1);
}

void compute(int seconds) {
  for (const auto until = Clock::now() + std::chrono::seconds{seconds}; Clock::now() < until;) continue;
}

/// Prints one line: the time, the kind of error, the rank that it names, and its message. Returns the exit code.
int report(const std::exception_ptr& thrown) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  const auto threw = [now](const char* kind, int rank, const char* words) {
    say(pdp::text("threw ", now, ' ', kind, ' ', rank, ' ', words));
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const pdp::PeerLost& lost) {
    threw("lost", lost.rank(), lost.what());
  } catch (const pdp::Timeout& late) {
    threw("late", -1, late.what());
  } catch (const std::exception& error) {
    threw("other", -1, error.what());
  }
  return 3;
}

template <class World>
int live(const std::string& what, int first, int second) {
  try {
    auto world = pdp::launch::join<World>();
    say("joined");
    try {
      if (what == "traffic") traffic(world, static_cast<unsigned>(first), second);
      if (what == "wait") wait_for_nothing(world);
      if (what == "late") {  // meets its deadline if time in which the process is stopped does not count
        world.deadline(std::chrono::seconds{first});
        if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{500});
        world.barrier();
      }
      if (what == "fork") {  // a child that keeps all inherited descriptors open, among them the connections between all ranks
        std::vector<int> sent(static_cast<std::size_t>(world.size())), received(sent.size());
        world.all_to_all(std::span<const int>{sent}, std::span{received});
        if (world.rank() == first && ::fork() == 0)
          while (true) ::pause();
        world.barrier();
        say("forked");
        wait_for_nothing(world);
      }
      if (what == "compute") {
        compute(first);
        world.barrier();
      }
      say("done");
      return 0;
    } catch (...) {
      return report(std::current_exception());  // before the world's destructor, which takes time
    }
  } catch (...) {
    return report(std::current_exception());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string name = argv[1], what = argv[2];
  const int first = std::atoi(argv[3]), second = std::atoi(argv[4]);
  if (name == "tcp") return live<comm::Tcp>(what, first, second);
  if (name == "shm") return live<comm::Shm>(what, first, second);
  if (name == "hosts") return live<OnHosts>(what, first, second);
  return live<comm::Default>(what, first, second);
}
