// Trains a classifier of handwritten digits on a mesh of ranks. The ranks share the data along the first axis, are stages of a pipeline
// along the second, and divide layers along the third.
//
//   mnist_hybrid --dp 2 --pp 2 --tp 2                 eight processes
//   srun -n 16 mnist_hybrid --pp 2 --tp 2             four shares of the data: 16 / (2 * 2)

#include <algorithm>
#include <cstdint>

#include <pdp/launch/start/number.hpp>

#include "common/digits.hpp"
#include "common/run.hpp"

using pdp::strategy::Mesh;

/// Returns the strategy that the command line names.
pdp::strategy::AnyStrategy hybrid(const examples::Flags& flags, Mesh mesh) {
  using namespace pdp::strategy;
  const int m = flags.micro_batches;
  if (flags.schedule == "gpipe") return Hybrid<GPipe>{.mesh = mesh, .micro_batches = m};
  if (flags.schedule == "interleaved") return Hybrid<Interleaved>{.mesh = mesh, .micro_batches = m};
  if (flags.schedule == "zero-bubble") return Hybrid<ZeroBubble>{.mesh = mesh, .micro_batches = m};
  return Hybrid<OneForwardOneBackward>{.mesh = mesh, .micro_batches = m};
}

/// Starts as many local ranks as the axes need, unless the command line or the environment gives their number.
void start_a_mesh(examples::Flags& flags) {
  if (flags.launch.ranks_are_given()) return;
  const std::int64_t ranks = Mesh{std::max(flags.data_axis, 1), flags.pipeline_axis, flags.tensor_axis}.size();
  if (ranks > pdp::launch::most_local_ranks)
    throw pdp::UsageError{
        pdp::text("--dp, --pp and --tp make ", ranks, " ranks, but at most ", pdp::launch::most_local_ranks, " can be started")};
  flags.launch.ranks = static_cast<int>(ranks);
}

int main(int argc, char** argv) {
  const auto flags = examples::parse(argc, argv, "Trains a classifier of handwritten digits on a mesh of ranks.",
                                     {.ranks = true, .schedule = true, .mesh = true}, start_a_mesh);

  // [train]
  return examples::run_on_device(flags, [&](auto& world, const auto&... device) {
    Mesh mesh{.pipeline = flags.pipeline_axis, .tensor = flags.tensor_axis};
    mesh.data = flags.data_axis > 0 ? flags.data_axis : static_cast<int>(std::max<std::int64_t>(1, world.size() / mesh.size()));
    examples::train_digits(world, hybrid(flags, mesh), flags, flags.batch_size * mesh.data, device...);
  });
  // [train]
}
