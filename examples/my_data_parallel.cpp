// Trains the classifier of mnist_ddp with a strategy that is not one of pdp's own: my_data_parallel --ranks 2
#include "my_data_parallel.hpp"

#include "common/digits.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits with a custom strategy.", {.ranks = true});
  // [train]
  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, MyDataParallel{}, flags, flags.batch_size * world.size(), device...);
  });
  // [train]
}
