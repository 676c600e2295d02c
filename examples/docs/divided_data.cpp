// The program of docs/how-to/divided_data.md. Each rank has the measurements of
// one station: divided_data --ranks 3

#include <cmath>
#include <utility>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

// [part]
/// Returns the measurements of one station: a time, and the temperature at it.
/// Stations have measured for different numbers of hours.
pdp::data::InMemory<float> measurements(int station) {
  const int hours = station == 0 ? 240 : 100 + 10 * station;
  std::vector<float> time, temperature;
  for (int hour = 0; hour < hours; ++hour) {
    const float day = static_cast<float>(hour % 24 + station % 4) / 24;
    time.push_back(day);
    temperature.push_back(std::sin(6.2832f * day));
  }
  return {pdp::Shape{1}, std::move(time), std::move(temperature)};
}
// [part]

namespace nn = pdp::nn;

constexpr pdp::Task curve{
    nn::Sequential{nn::Linear{1, 32}, nn::Tanh{}, nn::Linear{32, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    // [fit]
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         curve,
                         {.global_batch = 24, .seed = 1}};
    const pdp::data::PerRank part{measurements(trainer.share().index)};
    trainer.fit(part, {.epochs = 60}, [](const pdp::Epoch&) {});
    const auto totals = trainer.evaluate(part);
    pdp::print(world, "{} measurements, loss {:.3f}", totals.rows,
               totals.mean_loss());
    // [fit]
  });
}
