// The program of docs/how-to/learning_rates.md and of a part of
// docs/launching.md. It trains a classifier of points on three spirals, with
// parameter groups and a learning rate that falls when the loss on other points
// does not:
// fine_tune --ranks 2 --epochs 6

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/pdp.hpp>
#include <pdp/train/averages.hpp>

namespace nn = pdp::nn;
namespace optim = pdp::optim;

/// Returns points on three spirals, and the number of the spiral of each.
pdp::data::InMemory<std::int32_t> spirals(int points, double offset) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < 3 * points; ++i) {
    const double radius = (i / 3 + offset) / points;
    const double angle = 5 * radius + i % 3 * 2 * std::numbers::pi / 3;
    x.push_back(static_cast<float>(radius * std::cos(angle)));
    x.push_back(static_cast<float>(radius * std::sin(angle)));
    y.push_back(i % 3);
  }
  return {pdp::Shape{2}, x, y};
}

// [groups]
/// The first layer learns slowly, and the weight of the second not at all.
constexpr optim::ParameterGroup slow_layer{
    .chooses = [](const optim::ParameterInfo& of) { return of.layer == "0"; },
    .lr_factor = 0.1f};
constexpr optim::ParameterGroup frozen_weight{
    .chooses =
        [](const optim::ParameterInfo& of) { return of.name == "2.weight"; },
    .is_frozen = true};

constexpr pdp::Task classifier{
    nn::Sequential{nn::Linear{2, 64}, nn::Tanh{}, nn::Linear{64, 64},
                   nn::Tanh{}, nn::Linear{64, 3}},
    pdp::loss::CrossEntropy{},
    optim::Grouped{optim::Averaged{optim::AdamW{.lr = 5e-3f}, 0.99f},
                   optim::no_decay_on_biases_and_norms, slow_layer,
                   frozen_weight}};
// [groups]

/// Trains on points. If there is a folder, continues from its checkpoints.
void train(pdp::comm::Any& world, int epochs, const std::string& folder) {
  const auto points = spirals(400, 0.5), others = spirals(100, 0.25);
  pdp::Trainer trainer{world,
                       pdp::strategy::DataParallel{},
                       classifier,
                       {.global_batch = 100, .seed = 1}};
  // [plateau]
  const pdp::ReduceLearningRateOnPlateau reduction{.by = 0.5f, .patience = 1};
  const pdp::FitOptions options{.epochs = epochs,
                                .checkpoint = {.directory = folder},
                                .validation = &others,
                                .callbacks = {reduction}};
  trainer.fit(points, options, [&](const pdp::Epoch& epoch) {
    pdp::print(world, "epoch {}: validation loss {:.3f}, rate {:.5f}",
               epoch.number, epoch.value("validation loss"),
               epoch.learning_rate);
  });
  // [plateau]
  // [averages]
  const double plain = trainer.accuracy(others);
  const double averaged =
      pdp::with_averages(trainer, [&] { return trainer.accuracy(others); });
  pdp::print(world, "accuracy {:.2f}, with averages {:.2f}", plain, averaged);
  // [averages]
}

// [flags]
int main(int argc, char** argv) {
  const pdp::launch::ProgramFlags flags{
      .help =
          "fine_tune: trains a classifier of points on three spirals\n"
          "  --epochs N          passes over the points (10)\n"
          "  --checkpoints DIR   continue from this folder\n"};
  return pdp::launch::run<pdp::comm::Default>(
      argc, argv, flags,
      [](pdp::comm::Any& world, const pdp::launch::Arguments& arguments) {
        int epochs = 10;
        std::string folder;
        for (std::size_t i = 0; i < arguments.size(); i += 2) {
          const std::string& name = arguments[i];
          const std::string value =
              i + 1 < arguments.size() ? arguments[i + 1] : "";
          if (name == "--epochs")
            epochs = pdp::launch::parse_number("--epochs", value, 0, 1000);
          else if (name == "--checkpoints" && !value.empty())
            folder = value;
          else
            throw pdp::UsageError{pdp::text("unexpected argument ", name)};
        }
        train(world, epochs, folder);
      });
}
// [flags]
