// Trains a classifier of handwritten digits on one rank. The program is mnist_ddp.cpp with another strategy and no ranks to connect.

#include "common/digits.hpp"
#include "common/run.hpp"

using Strategy = pdp::strategy::Single;

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits.", {});

  // [train]
  const auto train = [&](auto& world, const auto&... device) {
    examples::train_digits(world, Strategy{}, flags, flags.batch_size, device...);
  };
  return examples::run_on_device(flags, train, examples::run_alone);
  // [train]
}
