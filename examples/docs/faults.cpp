// The program of docs/how-to/debug.md. It makes the fault that its first
// argument names: faults deadlock --ranks 2

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace comm = pdp::comm;
namespace nn = pdp::nn;

constexpr pdp::Task regression{
    nn::Sequential{nn::Linear{2, 8}, nn::Tanh{}, nn::Linear{8, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 0.1f}};

// [deadlock]
/// Each rank waits for a message that the other one would send later.
void deadlock(comm::Any& world) {
  std::vector<float> values(4);
  world.recv(values, 1 - world.rank());
  world.send(values, 1 - world.rank());
}
// [deadlock]

// [mismatch]
/// Rank 1 sums more values than rank 0.
void mismatch(comm::Any& world) {
  std::vector<float> values(world.rank() == 1 ? 5 : 4);
  world.all_reduce(values, comm::Sum{});
}
// [mismatch]

// [missing]
/// Rank 1 returns, while rank 0 waits for it.
void missing(comm::Any& world) {
  if (world.rank() == 1) return;
  std::vector<float> values(4);
  world.all_reduce(values, comm::Sum{});
}
// [missing]

// [arguments]
/// Rank 1 makes a trainer with another seed.
void arguments(comm::Any& world) {
  pdp::Trainer trainer{
      world,
      pdp::strategy::DataParallel{},
      regression,
      {.global_batch = 8, .seed = world.rank() == 1 ? 2u : 1u}};
}
// [arguments]

// [nan]
/// Rank 1 trains on a sample that has a NaN.
void nan(comm::Any& world) {
  pdp::Trainer trainer{world,
                       pdp::strategy::DataParallel{},
                       regression,
                       {.global_batch = 8, .seed = 1}};
  std::vector<float> x(8, 0.5f), y(4, 1.0f);
  trainer.step(x, y);
  if (world.rank() == 1) x[3] = std::numeric_limits<float>::quiet_NaN();
  trainer.step(x, y);
}
// [nan]

// [drift]
/// Rank 1 changes a parameter behind the back of the trainer.
void drift(comm::Any& world) {
  pdp::Trainer trainer{world,
                       pdp::strategy::DataParallel{},
                       regression,
                       {.global_batch = 8, .seed = 1}};
  const std::vector<float> x(8, 0.5f), y(4, 1.0f);
  trainer.step(x, y);
  trainer.check_parameters();  // they are equal
  trainer.engine().stage().for_each_parameter(
      [&](const nn::Parameter&, std::span<float> values) {
        if (world.rank() == 1) values[0] += 0.125f;
      });
  trainer.check_parameters();
}
// [drift]

int main(int argc, char** argv) {
  const std::string_view fault = argc > 1 ? argv[1] : "";
  return pdp::launch::run<comm::Default>(argc, argv, [&](comm::Any& world) {
    if (fault == "deadlock") deadlock(world);
    if (fault == "mismatch") mismatch(world);
    if (fault == "missing") missing(world);
    if (fault == "arguments") arguments(world);
    if (fault == "nan") nan(world);
    if (fault == "drift") drift(world);
  });
}
