// Trains a classifier of handwritten digits in one process. Each batch is scattered over devices, which are threads here, and the gradients
// of the parts are summed.
//
//   mnist_data_parallel --devices 2 --batch-size 256      two threads, each with 128 samples of each batch

#include "common/digits.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags =
      examples::parse(argc, argv, "Trains a classifier of handwritten digits on several devices of one process.", {.devices = true});

  // [train]
  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, pdp::strategy::DataParallel{}, flags, flags.batch_size, device...);
  });
  // [train]
}
