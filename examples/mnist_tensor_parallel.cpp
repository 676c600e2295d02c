// Trains a classifier of handwritten digits. Its layers are divided over the ranks: each rank has some columns, or some rows, of every
// weight.
//
//   mnist_tensor_parallel --ranks 2

#include "common/digits.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags =
      examples::parse(argc, argv, "Trains a classifier of handwritten digits whose layers are divided over the ranks.", {.ranks = true});

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, pdp::strategy::TensorParallel{}, flags, flags.batch_size, device...);
  });
}
