// The program of docs/how-to/validate.md. It fits a function of two variables,
// and stops when the error on held-out points does not fall: validate

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace {

using Samples = pdp::data::InMemory<float>;

/// Points (x, y) on a grid with this step in [-1, 1], and sin(3 x) cos(2 y).
Samples grid(float step) {
  std::vector<float> points, values;
  for (float x = -1; x <= 1; x += step)
    for (float y = -1; y <= 1; y += step) {
      points.insert(points.end(), {x, y});
      values.push_back(std::sin(3 * x) * std::cos(2 * y));
    }
  return {pdp::Shape{2}, points, values};
}

constexpr pdp::Task task{
    pdp::nn::Sequential{pdp::nn::Linear{2, 32}, pdp::nn::Tanh{},
                        pdp::nn::Linear{32, 32}, pdp::nn::Tanh{},
                        pdp::nn::Linear{32, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 0.01f}};

// [metric]
/// The largest error of a value.
struct LargestError {
  [[nodiscard]] std::string name() const { return "largest error"; }
  [[nodiscard]] pdp::Index state_size(pdp::Index) const { return 1; }
  void add(pdp::Matrix<const float> outputs, std::span<const float> targets,
           std::span<double> state) const {
    for (pdp::Index i = 0; i < outputs.size(); ++i) {
      const float error = outputs.data[i] - targets[pdp::as_size(i)];
      state[0] = std::max(state[0], double{std::abs(error)});
    }
  }
  /// Adds the rows of another rank. Without it, the numbers would be added.
  void merge(std::span<double> state, std::span<const double> other) const {
    state[0] = std::max(state[0], other[0]);
  }
  [[nodiscard]] double result(std::span<const double> state) const {
    return state[0];
  }
};
// [metric]

}  // namespace

int main(int argc, char** argv) {
  using Comm = pdp::comm::Default;
  return pdp::launch::run<Comm>(argc, argv, [](Comm& world) {
    const Samples train = grid(0.05f), held_out = grid(0.07f);
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         task,
                         {.global_batch = 64, .seed = 1}};
    // [fit]
    namespace metric = pdp::metric;
    pdp::KeepBest best;
    const std::vector<pdp::Epoch> history = trainer.fit(
        train,
        {.epochs = 200,
         .validation = &held_out,
         .metrics = {metric::MeanAbsoluteError{}, LargestError{}},
         .callbacks = {pdp::EarlyStopping{.patience = 8}, std::ref(best)}});
    // [fit]
    if (world.rank() != 0) return;
    std::cout << "epochs before the end: "
              << (history.size() < 200 ? "stopped early" : "all") << '\n';
    // [read]
    const auto at = pdp::as_size(best.epoch);
    const pdp::Evaluation& found = *history[at].validation;
    const double error = found.metric("mean absolute error").value();
    // [read]
    std::cout << "mean absolute error of the best epoch: "
              << (error < 0.02 ? "below 0.02" : "0.02 or more") << '\n';
  });
}
