// Owners of trainers in double fit a law to the last digits, and save it for the program inference: double_precision FOLDER --ranks 2
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

using Comm = pdp::comm::Default;
constexpr pdp::Task law{pdp::nn::Linear{3, 1}, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 0.3f}};
constexpr int batch = 32;

/// Appends samples of three numbers each and their targets, as floats or as doubles.
template <class T>
void draw(int first, int count, std::vector<T>& x, std::vector<T>& y) {
  for (int i = first; i < first + count; ++i) {
    const T row[] = {std::sin(T(i)), std::cos(T(1.3) * T(i)), std::sin(T(2.3) * T(i))};
    x.insert(x.end(), row, row + 3);
    y.push_back(T(0.7) * row[0] - T(1.3) * row[1] + T(0.25) * row[2] + T(0.1));
  }
}

class Fit {
 public:
  explicit Fit(Comm& world) : trainer_{world, pdp::strategy::Zero{}, law, {.global_batch = batch, .seed = 1}, pdp::Float64{}} {}
  void begin(const pdp::data::InMemory<float>& samples) { trainer_.fit(samples, {.epochs = 10}); }
  double learn(int step) {
    const int own = batch / trainer_.share().count;
    std::vector<double> x, y;
    draw(batch * step + own * trainer_.share().index, own, x, y);
    return trainer_.step(x, y).mean_loss();
  }
  void save(const std::filesystem::path& folder) { trainer_.save(folder); }

 private:
  pdp::TrainerFor<Comm, pdp::strategy::Zero, decltype(law), pdp::Float64> trainer_;
};

int main(int argc, char** argv) {
  const std::filesystem::path folder = argv[1];
  return pdp::launch::run<Comm>(argc, argv, [&](Comm& world) {
    std::vector<float> x, y;
    draw(0, 10 * batch, x, y);
    const pdp::data::InMemory<float> samples{pdp::Shape{3}, x, y};
    std::vector<Fit> fits;
    fits.emplace_back(world).begin(samples);
    fits.emplace_back(world);  // moves the first one
    double loss = 0;
    for (int step = 10; step < 300; ++step) loss = fits.front().learn(step);
    const Fit last = std::exchange(fits.back(), std::move(fits.front()));
    fits.back().save(folder);
    pdp::print(world, "{}", loss < 1e-24 ? "fitted to the last digits" : "not fitted");
  });
}
