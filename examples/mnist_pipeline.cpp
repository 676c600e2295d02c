// Trains a classifier of handwritten digits. Its layers are divided into pipeline stages. The micro-batches of a batch pass through the
// stages one after another.
//
//   mnist_pipeline --ranks 2                                                  one forward, one backward (1F1B)
//   mnist_pipeline --ranks 2 --schedule zero-bubble --micro-batches 8         backward in two halves, so that ranks are idle for less time

#include "common/digits.hpp"
#include "common/run.hpp"

/// Returns the pipeline that the command line names.
pdp::strategy::AnyStrategy pipeline(const examples::Flags& flags) {
  using namespace pdp::strategy;
  const int m = flags.micro_batches;
  if (flags.schedule == "gpipe") return Pipeline<GPipe>{.micro_batches = m};
  if (flags.schedule == "interleaved") return Pipeline<Interleaved>{.micro_batches = m};
  if (flags.schedule == "zero-bubble") return Pipeline<ZeroBubble>{.micro_batches = m};
  return Pipeline<OneForwardOneBackward>{.micro_batches = m};
}

int main(int argc, char** argv) {
  const auto flags =
      examples::parse(argc, argv, "Trains a classifier of handwritten digits in a pipeline of ranks.", {.ranks = true, .schedule = true});

  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    examples::train_digits(world, pipeline(flags), flags, flags.batch_size, device...);
  });
}
