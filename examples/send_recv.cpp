// Sends a tensor from one rank to another. By default, the program starts the ranks as two processes on this machine. --threads 2 makes
// them threads of one process. With RANK and WORLD_SIZE in the environment, the program is one of the ranks.

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "common/command_line.hpp"
#include "common/run.hpp"

// [tensor]
using Tensor = std::array<float, 2>;

/// Prints a message and the values, in PyTorch's format. Flushes them, so that the ranks' lines appear in the order of their calls.
void print(const char* what, const Tensor& tensor) {
  fmt::print(stdout, "{}\ntensor([{: #.0f}, {: #.0f}])\n", what, tensor[0], tensor[1]);
  std::fflush(stdout);
}
// [tensor]

int main(int argc, char** argv) {
  // [launch]
  pdp::launch::Options launch;
  examples::CommandLine line{argc, argv, "Sends a tensor from rank 0 to rank 1."};
  line.ranks(launch, " (2 by default)");
  line.read([&] {
    if (!launch.ranks_are_given()) launch.ranks = 2;
  });
  // [launch]

  return examples::run(launch, [](auto& world) {
    if (world.size() != 2)
      throw pdp::UsageError{pdp::text("send_recv needs 2 ranks, a sender and a receiver (--ranks 2); found ", world.size())};
    // [send]
    const bool sender = world.rank() == 0;
    Tensor tensor{};
    if (sender) {
      tensor = {1, -1};
      world.send(tensor, 1);
      print("Rank-0 has sent the following tensor to Rank-1", tensor);
    } else {
      world.recv(tensor, 0);
    }
    world.barrier();  // so that the sender prints first
    if (!sender) print("Rank-1 has received the following tensor from Rank-0", tensor);
    // [send]
  });
}
