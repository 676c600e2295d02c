// Trains a classifier of handwritten digits. Its layers are divided into stages, one on each rank. Only one stage computes at a time,
// unless the batch is cut into micro-batches.
//
//   mnist_model_parallel --ranks 2                two stages
//   mnist_model_parallel --ranks 2 --pipelined    micro-batches of at most 20 samples: both ranks are busy

#include "common/digits.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits that is cut in stages, one on each rank.",
                                     {.ranks = true, .pipelined = true});
  // [pieces]
  const int pieces = flags.pipelined ? static_cast<int>((flags.batch_size + 19) / 20) : 1;
  // [pieces]

  // [train]
  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, pdp::strategy::Pipeline<pdp::plan::GPipe>{.micro_batches = pieces}, flags, flags.batch_size, device...);
  });
  // [train]
}
