// Two ranks, the first of which sends a tensor to the second: two processes of this machine, or as --ranks 2, --threads 2 or RANK and
// WORLD_SIZE say.

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "common/command_line.hpp"
#include "common/run.hpp"

using Tensor = std::array<float, 2>;

/// What happened and the values, as PyTorch prints a tensor: at once, so that lines of several ranks do not mix.
void print(const char* what, const Tensor& tensor) {
  fmt::print(stdout, "{}\ntensor([{: #.0f}, {: #.0f}])\n", what, tensor[0], tensor[1]);
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  pdp::launch::Options launch;
  examples::CommandLine line{argc, argv, "Sends a tensor from rank 0 to rank 1."};
  line.ranks(launch, " (2 by default)");
  line.read([&] {
    if (!launch.ranks_are_given()) launch.ranks = 2;
  });

  return examples::run(launch, [](auto& world) {
    if (world.size() != 2)
      throw pdp::UsageError{pdp::text("send_recv takes 2 ranks, one that sends and one that receives; found ", world.size())};
    const bool sender = world.rank() == 0;
    Tensor tensor{};
    if (sender) {
      tensor = {1, -1};
      world.send(tensor, 1);
      print("Rank-0 has sent the following tensor to Rank-1", tensor);
    } else {
      world.recv(tensor, 0);
    }
    world.barrier();  // so that the sender speaks first
    if (!sender) print("Rank-1 has received the following tensor from Rank-0", tensor);
  });
}
