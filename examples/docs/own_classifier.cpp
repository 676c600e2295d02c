// The program of docs/how-to/extend.md with a layer and a metric of its own. It
// classifies points in a plane by their distance from the origin:
// own_classifier --ranks 2

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;

// [layer]
/// y = x * weight, with a weight for each column: [rows, width] -> [rows,
/// width]. For CPUs.
struct Scale {
  static constexpr const char* name = "Scale";
  using forgets_output = Scale;  // backward does not read y

  pdp::Index width = 0;

  [[nodiscard]] constexpr pdp::Index input_elements() const { return width; }
  [[nodiscard]] constexpr pdp::Shape output(const pdp::Shape&) const {
    return pdp::Shape{width};
  }
  [[nodiscard]] constexpr pdp::Index parameter_elements() const {
    return nn::padded_parameter(width);
  }
  [[nodiscard]] constexpr pdp::Index saved_elements(const pdp::Shape&) const {
    return 0;
  }

  template <class Visit>
  constexpr void parameters(const nn::Path& path, pdp::Index offset,
                            Visit&& visit) const {
    visit(nn::Parameter{.layer = path,
                        .name = "weight",
                        .rows = width,
                        .offset = offset,
                        .fan_in = width,
                        .fan_out = width,
                        .initializer = nn::ones});
  }

  template <class T>
  void forward(const pdp::cpu::Cpu&, const nn::State<T>& state,
               pdp::Matrix<const T> x, pdp::Matrix<T> y, T*) const {
    for (pdp::Index r = 0; r < x.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c)
        y.row(r)[c] = x.row(r)[c] * state.value[c];
  }
  template <class T>
  void backward_input(const pdp::cpu::Cpu&, const nn::State<T>& state,
                      pdp::Matrix<const T>, pdp::Matrix<const T>,
                      pdp::Matrix<const T> gradient_y,
                      pdp::Matrix<T> gradient_x, T*) const {
    for (pdp::Index r = 0; r < gradient_y.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c)
        gradient_x.row(r)[c] = gradient_y.row(r)[c] * state.value[c];
  }
  template <class T>
  void backward_weight(const pdp::cpu::Cpu&, const nn::State<T>& state,
                       pdp::Matrix<const T> x, pdp::Matrix<const T>,
                       pdp::Matrix<const T> gradient_y, T*) const {
    if (!state.accumulate) std::fill_n(state.gradient, width, T{});
    for (pdp::Index r = 0; r < x.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c)
        state.gradient[c] += x.row(r)[c] * gradient_y.row(r)[c];
  }
};

static_assert(nn::LayerOn<Scale, pdp::cpu::Cpu, float>);
// [layer]

// [metric]
/// Returns, for each class (row), how many samples of it the model puts in each
/// class (column): [classes, classes], over all ranks.
template <class World, class Trainer, class Data>
std::vector<std::int64_t> confusion(World& world, Trainer& trainer,
                                    const Data& data, std::size_t classes) {
  const auto share = pdp::data::shard_rows(data.size(), trainer.share());
  std::vector<pdp::Index> which(pdp::as_size(share.size()));
  std::iota(which.begin(), which.end(), share.first);
  std::vector<float> x(which.size() *
                       pdp::as_size(data.sample_shape().elements()));
  std::vector<std::int32_t> y(which.size());
  data.gather(which, x, y);

  const auto outputs = trainer.predict(x);  // [rows, classes]
  std::vector<std::int64_t> counts(classes * classes);
  for (std::size_t row = 0; row < y.size(); ++row) {
    const auto first = outputs.data() + row * classes;
    const auto largest = std::max_element(first, first + classes) - first;
    ++counts[pdp::as_size(y[row]) * classes + pdp::as_size(largest)];
  }
  world.all_reduce(counts, pdp::comm::Sum{});
  return counts;
}
// [metric]

/// Returns points in a square, and the number of the ring that each is in.
pdp::data::InMemory<std::int32_t> rings(int points_of_side) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < points_of_side; ++i)
    for (int j = 0; j < points_of_side; ++j) {
      const double a = 2 * (i + 0.5) / points_of_side - 1;
      const double b = 2 * (j + 0.5) / points_of_side - 1;
      const double radius = std::hypot(a, b);
      x.push_back(static_cast<float>(a));
      x.push_back(static_cast<float>(b));
      y.push_back(radius < 0.5 ? 0 : radius < 0.9 ? 1 : 2);
    }
  return {pdp::Shape{2}, x, y};
}

// [main]
constexpr pdp::Task ring_classifier{
    nn::Sequential{nn::Linear{2, 32}, Scale{32}, nn::Tanh{}, nn::Linear{32, 3}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-2f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const auto train = rings(40), test = rings(25);
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         ring_classifier,
                         {.global_batch = 100, .seed = 1}};
    trainer.fit(train, {.epochs = 20}, [](const pdp::Epoch&) {});
    const auto counts = confusion(world, trainer, test, 3);
    for (std::size_t own = 0; own < 3; ++own) {
      const auto row = counts.begin() + static_cast<std::ptrdiff_t>(3 * own);
      const auto samples = std::accumulate(row, row + 3, std::int64_t{0});
      pdp::print(
          world, "class {}: recall {:.2f}", own,
          static_cast<double>(counts[4 * own]) / static_cast<double>(samples));
    }
  });
}
// [main]
