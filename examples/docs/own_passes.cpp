// The program of docs/how-to/extend.md with layers that know the pass: one
// draws random numbers, the other keeps running statistics. It predicts a
// distance from numbers of different sizes: own_passes --ranks 2

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;

// [draws]
/// In a step, multiplies each value by a normal number with mean 1. N.
/// Srivastava et al., "Dropout", JMLR 2014, section 10. For CPUs.
struct Noise : nn::NoParameters {
  static constexpr const char* name = "Noise";
  static constexpr bool is_elementwise = true;
  static constexpr bool uses_row_numbers = true;

  float deviation = 0;
  constexpr explicit Noise(float size) : deviation{size} {}

  [[nodiscard]] constexpr pdp::Index input_elements() const { return 0; }
  [[nodiscard]] constexpr pdp::Shape output(const pdp::Shape& input) const {
    return input;
  }

  template <class T>
  void forward(const pdp::cpu::Cpu&, const nn::State<T>& state,
               pdp::Matrix<const T> x, pdp::Matrix<T> y, T*) const {
    multiply(state.pass, x, y);
  }
  template <class T>
  void backward_input(const pdp::cpu::Cpu&, const nn::State<T>& state,
                      pdp::Matrix<const T>, pdp::Matrix<const T>,
                      pdp::Matrix<const T> gradient_y,
                      pdp::Matrix<T> gradient_x, T*) const {
    multiply(state.pass, gradient_y, gradient_x);  // by the same numbers
  }

 private:
  template <class T>
  void multiply(const pdp::Pass& pass, pdp::Matrix<const T> from,
                pdp::Matrix<T> to) const {
    if (!pass.is_training) {
      std::ranges::copy(from.values(), to.data);
      return;
    }
    const pdp::RowGenerator numbers = pass.generator(*this);
    for (pdp::Index r = 0; r < from.rows; ++r)
      for (pdp::Index c = 0; c < from.cols; ++c)
        to.row(r)[c] = from.row(r)[c] * (1 + deviation * numbers.normal(r, c));
  }
};
// [draws]

// [buffers]
/// y = (x - mean) / sqrt(variance), with the running mean and variance of the
/// rows of all steps: [rows, width] -> [rows, width]. For CPUs.
struct Standardise {
  static constexpr const char* name = "Standardise";
  using forgets_output = Standardise;

  pdp::Index width = 0;
  float momentum = 0.1f;

  [[nodiscard]] constexpr pdp::Index input_elements() const { return width; }
  [[nodiscard]] constexpr pdp::Shape output(const pdp::Shape&) const {
    return pdp::Shape{width};
  }
  [[nodiscard]] constexpr pdp::Index parameter_elements() const {
    return 2 * nn::padded_parameter(width);
  }
  [[nodiscard]] constexpr pdp::Index saved_elements(const pdp::Shape&) const {
    return 0;
  }

  template <class Visit>
  constexpr void parameters(const nn::Path& path, pdp::Index offset,
                            Visit&& visit) const {
    nn::Parameter buffer{.layer = path,
                         .name = "running_mean",
                         .rows = width,
                         .offset = offset,
                         .initializer = nn::zeros,
                         .is_buffer = true};
    visit(buffer);
    buffer.name = "running_var";
    buffer.offset += nn::padded_parameter(width);
    buffer.initializer = nn::ones;
    visit(buffer);
  }

  template <class T>
  void forward(const pdp::cpu::Cpu&, const nn::State<T>& state,
               pdp::Matrix<const T> x, pdp::Matrix<T> y, T*) const {
    const T* const variance = state.value + nn::padded_parameter(width);
    for (pdp::Index r = 0; r < x.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c)
        y.row(r)[c] = (x.row(r)[c] - state.value[c]) / deviation(variance[c]);
  }
  template <class T>
  void backward_input(const pdp::cpu::Cpu&, const nn::State<T>& state,
                      pdp::Matrix<const T>, pdp::Matrix<const T>,
                      pdp::Matrix<const T> gradient_y,
                      pdp::Matrix<T> gradient_x, T*) const {
    const T* const variance = state.value + nn::padded_parameter(width);
    for (pdp::Index r = 0; r < gradient_y.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c)
        gradient_x.row(r)[c] = gradient_y.row(r)[c] / deviation(variance[c]);
  }
  /// The changes of the buffers: sums over rows, multiplied by row_scale().
  template <class T>
  void backward_weight(const pdp::cpu::Cpu&, const nn::State<T>& state,
                       pdp::Matrix<const T> x, pdp::Matrix<const T>,
                       pdp::Matrix<const T>, T*) const {
    const pdp::Index second = nn::padded_parameter(width);
    if (!state.accumulate) {
      std::fill_n(state.gradient, width, T{});
      std::fill_n(state.gradient + second, width, T{});
    }
    const T part = static_cast<T>(state.pass.row_scale()) * momentum;
    for (pdp::Index r = 0; r < x.rows; ++r)
      for (pdp::Index c = 0; c < width; ++c) {
        const T distance = x.row(r)[c] - state.value[c];
        const T variance = state.value[second + c];
        state.gradient[c] += part * distance;
        state.gradient[second + c] += part * (distance * distance - variance);
      }
  }

 private:
  template <class T>
  static T deviation(T variance) {
    return std::sqrt(variance + T{1e-5f});
  }
};
// [buffers]

/// Returns points with coordinates of different sizes, and their distances from
/// the origin in units of the second one.
pdp::data::InMemory<float> points(int count, std::uint64_t seed) {
  const auto key = pdp::random::make_key(seed, "points");
  std::vector<float> x, y;
  for (int i = 0; i < count; ++i) {
    const double a = 400 * pdp::random::uniform<double>(key, 2 * i);
    const double b = 0.04 * pdp::random::uniform<double>(key, 2 * i + 1);
    x.push_back(static_cast<float>(a));
    x.push_back(static_cast<float>(b));
    y.push_back(static_cast<float>(std::hypot(a / 400, b / 0.04)));
  }
  return {pdp::Shape{2}, x, y, pdp::Shape{1}};
}

// [main]
constexpr pdp::Task distance{
    nn::Sequential{Standardise{2}, nn::Linear{2, 64}, nn::Tanh{}, Noise{0.1f},
                   nn::Linear{64, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         distance,
                         {.global_batch = 50, .seed = 1}};
    trainer.fit(points(1000, 1), {.epochs = 10}, [](const pdp::Epoch&) {});
    const auto all = trainer.parameters();  // on rank 0
    if (!all.empty())
      pdp::print(world, "mean of the first coordinate: {:.0f}",
                 all.front().values.front());
    pdp::print(world, "error without noise: {:.3f}",
               std::sqrt(trainer.evaluate(points(500, 2)).mean_loss()));
  });
}
// [main]
