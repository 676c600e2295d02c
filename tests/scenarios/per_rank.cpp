// Each rank has measured a part of the samples, and parts differ in size: per_rank --ranks 3
#include <cmath>
#include <functional>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;
using Samples = pdp::data::InMemory<float>;

constexpr pdp::Task task{nn::Sequential{nn::Linear{2, 32}, nn::Tanh{}, nn::Linear{32, 1}}, pdp::loss::MeanSquaredError{},
                         pdp::optim::Adam{.lr = 0.01f}};

/// Measurements of a rank, each of two numbers and a function of them.
Samples measure(int rank, int count) {
  std::vector<float> x, y;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<float>(1000 * rank + i);
    x.insert(x.end(), {std::sin(at), std::cos(1.3f * at)});
    y.push_back(x[x.size() - 2] * x[x.size() - 1]);
  }
  return {pdp::Shape{2}, x, y};
}

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](pdp::comm::Default& world) {
    const pdp::data::PerRank own{measure(world.rank(), 150 + 40 * world.rank())};
    const pdp::data::PerRank held_out{measure(100 + world.rank(), 30)};
    pdp::Trainer trainer{world, pdp::strategy::Zero{.stage = 2}, task, {.global_batch = 48, .seed = 1}};
    pdp::KeepBest best{.watches = "mean absolute error"};
    const auto history = trainer.fit(own, {.epochs = 60,
                                           .validation = &held_out,
                                           .metrics = {pdp::metric::MeanAbsoluteError{}},
                                           .callbacks = {std::ref(best), pdp::EarlyStopping{.patience = 10}}});
    pdp::print(world, "best epoch: error {}", best.value < 0.05 ? "below 0.05" : "0.05 or more");
  });
}
