// Trains a classifier of handwritten digits on data-parallel ranks: threads, processes of this machine, or processes of several machines.
//
//   mnist_ddp --ranks 2                        two processes on this machine
//   mnist_ddp --ranks 2 --comm tcp             the same, connected by TCP instead of shared memory
//   mnist_ddp -n 2 -g 4 -nr 0 -ip 10.0.0.1     the first of two machines with four processes each

#include "common/digits.hpp"
#include "common/run.hpp"

using Strategy = pdp::strategy::DataParallel;

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits on data-parallel ranks.", {.ranks = true});

  // [train]
  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, Strategy{}, flags, flags.batch_size * world.size(), device...);
  });
  // [train]
}
