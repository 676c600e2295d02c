// The program of docs/how-to/extend.md with a dataset, a loss and an optimizer
// of its own. It predicts the next value of a time series: own_regression

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

// [data]
/// Windows of a time series. Sample i has `width` values, from number i on. Its
/// target is the value behind them. Copies share the series.
class Windows {
 public:
  using Target = float;

  Windows(std::vector<float> series, pdp::Index width)
      : series_{std::make_shared<const std::vector<float>>(std::move(series))},
        width_{width} {}

  [[nodiscard]] pdp::Index size() const {
    return pdp::as_index(series_->size()) - width_;
  }
  [[nodiscard]] pdp::Shape sample_shape() const { return pdp::Shape{width_}; }
  [[nodiscard]] pdp::Shape target_shape() const { return pdp::Shape{1}; }

  /// Copies the samples in `which`: x is [samples, width], y is [samples, 1].
  void gather(std::span<const pdp::Index> which, std::span<float> x,
              std::span<float> y) const {
    pdp::data::check_gather(*this, which, x, y);
    auto row = x.begin();
    for (std::size_t sample = 0; sample < which.size(); ++sample) {
      const auto first = series_->begin() + which[sample];
      row = std::copy_n(first, width_, row);
      y[sample] = first[width_];
    }
  }

 private:
  std::shared_ptr<const std::vector<float>> series_;
  pdp::Index width_;
};

static_assert(pdp::data::Dataset<Windows>);
// [data]

// [loss]
/// The mean over a sample's outputs of e^2 / 2 for errors e up to `delta`, and
/// of delta (e - delta / 2) for larger ones. P. J. Huber, "Robust estimation of
/// a location parameter", 1964. For CPUs.
struct Huber {
  using Target = float;
  static constexpr bool has_classes = false;

  float delta = 1;

  [[nodiscard]] constexpr pdp::Index target_elements(pdp::Index outputs) const {
    return outputs;
  }

  void operator()(const pdp::cpu::Cpu&, pdp::Matrix<const float> output,
                  std::span<const float> targets, const double* scale,
                  pdp::Matrix<float> gradient, pdp::LossSums* sums) const {
    const auto width = static_cast<float>(output.cols);
    const auto factor = static_cast<float>(*scale) / width;
    for (pdp::Index i = 0; i < output.size(); ++i) {
      const float error = output.data[i] - targets[pdp::as_size(i)];
      const float size = std::abs(error), near = std::min(size, delta);
      sums->loss += near * (size - near / 2) / width;
      if (gradient.data != nullptr)  // null in an evaluation
        gradient.data[i] = factor * std::copysign(near, error);
    }
  }
};

static_assert(pdp::loss::Loss<Huber, pdp::cpu::Cpu>);
// [loss]

// [optimizer]
/// Divides the gradient by a running root of its mean square. Hinton, "Neural
/// networks for machine learning", lecture 6e, 2012.
struct RmsProp {
  float lr = 1e-3f;
  float decay = 0.9f;
  float eps = 1e-8f;

  template <class V>
  struct State {
    V square;
  };
  static constexpr std::array state_names{"square_avg"};  // in files

  template <class V>
  constexpr void update(V& parameter, const V& gradient, State<V>& state,
                        const pdp::optim::StepInfo& step) const {
    using std::sqrt;
    state.square = decay * state.square + (1 - decay) * (gradient * gradient);
    parameter =
        parameter - step.lr_factor * lr * gradient / (sqrt(state.square) + eps);
  }
};

static_assert(pdp::optim::Optimizer<RmsProp>);
// [optimizer]

/// Returns two waves, of which every 50th value is wrong.
std::vector<float> waves(int values, double offset) {
  std::vector<float> series;
  for (int i = 0; i < values; ++i) {
    const double t = offset + 0.1 * i;
    const double wave = std::sin(t) + 0.5 * std::sin(2.7 * t);
    series.push_back(static_cast<float>(i % 50 == 49 ? 5 * wave : wave));
  }
  return series;
}

// [main]
namespace nn = pdp::nn;

constexpr pdp::Task forecast{
    nn::Sequential{nn::Linear{16, 32}, nn::Tanh{}, nn::Linear{32, 1}},
    Huber{.delta = 0.5f}, RmsProp{.lr = 2e-3f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const Windows train{waves(2016, 0), 16}, test{waves(416, 300), 16};
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         forecast,
                         {.global_batch = 50, .seed = 1}};
    const double before = trainer.evaluate(test).mean_loss();
    trainer.fit(train, {.epochs = 10}, [](const pdp::Epoch&) {});
    pdp::print(world, "loss before training {:.2f}, after it {:.2f}", before,
               trainer.evaluate(test).mean_loss());
  });
}
// [main]
