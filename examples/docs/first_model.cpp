// The program of docs/start/first_model.md, which shows the parts between marks
// such as [data]. It trains a classifier of points on three spirals, on one
// rank or several: first_model --ranks 4

// [include]
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>
// [include]

// [data]
/// Returns points on three spirals: x is [samples, 2], y has the number of the
/// spiral of each point. `offset` moves the points along the spirals.
pdp::data::InMemory<std::int32_t> spirals(int points, double offset) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int point = 0; point < points; ++point) {
    for (int spiral = 0; spiral < 3; ++spiral) {
      const double radius = (point + offset) / points;
      const double angle = 5 * radius + spiral * 2 * std::numbers::pi / 3;
      x.push_back(static_cast<float>(radius * std::cos(angle)));
      x.push_back(static_cast<float>(radius * std::sin(angle)));
      y.push_back(spiral);
    }
  }
  return {pdp::Shape{2}, x, y};
}
// [data]

// [model]
namespace nn = pdp::nn;

constexpr pdp::Task spiral_classifier{
    nn::Sequential{nn::Linear{2, 64}, nn::Tanh{}, nn::Linear{64, 64},
                   nn::Tanh{}, nn::Linear{64, 3}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 5e-3f}};
// [model]

int main(int argc, char** argv) {
  // [trainer]
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const auto train = spirals(400, 0.5), test = spirals(100, 0.25);
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         spiral_classifier,
                         {.global_batch = 100, .seed = 1}};
    // [trainer]

    // [fit]
    trainer.fit(train, {.epochs = 20}, [&](const pdp::Epoch& epoch) {
      if (epoch.number % 5 == 4)
        pdp::print(world, "epoch {} of 20: loss {:.2f}", epoch.number + 1,
                   epoch.loss);
    });
    // [fit]

    // [evaluate]
    const auto totals = trainer.evaluate(test);
    pdp::print(world, "test: loss {:.2f}, accuracy {:.2f}", totals.mean_loss(),
               totals.accuracy());

    const std::vector<float> point{0.5f, 0.0f};
    const auto outputs = trainer.predict(point);
    pdp::print(world, "outputs for (0.5, 0): {:.1f}, {:.1f}, {:.1f}",
               outputs[0], outputs[1], outputs[2]);
    // [evaluate]

    // [save]
    const auto parameters = trainer.parameters();  // on the other ranks: none
    if (world.rank() == 0)
      pdp::checkpoint::save("spirals.safetensors", parameters);
    pdp::print(world, "saved {} tensors to spirals.safetensors",
               parameters.size());
    // [save]
  });
}
