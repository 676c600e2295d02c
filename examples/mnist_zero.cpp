// Trains a classifier of handwritten digits on data-parallel ranks. They shard state that each rank would otherwise hold in full (ZeRO).
//
//   mnist_zero --ranks 2              stage 1: each rank keeps the optimizer state of its slice of the parameters
//   mnist_zero --ranks 2 --stage 3    gradients and parameters are sharded, too

#include "common/digits.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits on data-parallel ranks with ZeRO sharding.",
                                     {.ranks = true, .stage = true});

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, pdp::strategy::Zero{.stage = flags.stage}, flags, flags.batch_size * world.size(), device...);
  });
}
