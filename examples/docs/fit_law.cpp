// The program of docs/how-to/double.md and docs/how-to/member.md. A class fits
// a law to measurements in double: fit_law

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

// [task]
constexpr pdp::Task law{pdp::nn::Linear{2, 1}, pdp::loss::MeanSquaredError{},
                        pdp::optim::Sgd{.lr = 0.3f}};
constexpr pdp::strategy::Single single{};
// [task]

// [class]
/// A law that is fitted to measurements while they are made.
class Fit {
 public:
  /// Borrows the world, which must exist longer than the Fit.
  explicit Fit(pdp::comm::Self& world)
      : trainer_{world, single, law, {.global_batch = 16}, pdp::Float64{}} {}

  /// Takes up to 16 measurements. Returns their mean squared error.
  double learn(std::span<const double> x, std::span<const double> y) {
    return trainer_.step(x, y).mean_loss();
  }
  [[nodiscard]] double operator()(double a, double b) {
    return trainer_.predict(std::array{a, b}).front();
  }

 private:
  pdp::TrainerFor<pdp::comm::Self, decltype(single), decltype(law),
                  pdp::Float64>
      trainer_;
};
// [class]

namespace {

/// Appends 16 measurements of the law 3 a - 2 b + 1.
template <class T>
void measure(int step, std::vector<T>& x, std::vector<T>& y) {
  for (int i = 16 * step; i < 16 * step + 16; ++i) {
    const T a = std::sin(static_cast<T>(i)),
            b = std::cos(static_cast<T>(2 * i));
    x.insert(x.end(), {a, b});
    y.push_back(3 * a - 2 * b + 1);
  }
}

}  // namespace

int main() {
  pdp::comm::Self world;
  std::vector<double> x, y;

  // [vector]
  std::vector<Fit> fits;
  fits.emplace_back(world);
  fits.emplace_back(world);  // moves the first one
  // [vector]
  double error = 0;
  for (int step = 0; step < 300; ++step) {
    x.clear(), y.clear();
    measure(step, x, y);
    error = fits.front().learn(x, y);
  }
  std::printf("error %s, law(1, 1) = %.12f\n",
              error < 1e-24 ? "below 1e-24" : "of 1e-24 or more",
              fits.front()(1, 1));

  std::vector<float> float_x, float_y;
  for (int step = 0; step < 10; ++step) measure(step, float_x, float_y);
  // [fit]
  pdp::Trainer trainer{
      world, single, law, {.global_batch = 16}, pdp::Float64{}};
  const pdp::data::InMemory<float> data{pdp::Shape{2}, float_x, float_y};
  trainer.fit(data, {.epochs = 30}, [](const pdp::Epoch&) {});
  const std::vector<float> sample{1, 1};
  const std::vector<double> output = trainer.predict(sample);
  // [fit]
  std::printf("after fit: %.6f\n", output.front());
}
