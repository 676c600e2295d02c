#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/averages.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "train/ways.hpp"

/// Layers and losses that use the pass: random numbers, and buffers.
namespace pass_test {

namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::checkpoint::Tensor;
using pdp::comm::Thread;
using ways_test::Way, ways_test::ways;

namespace {

/// In a step, multiplies each value by a random number from 0.5 to 1.5.
struct Noise : nn::NoParameters {
  static constexpr const char* name = "Noise";
  static constexpr bool is_elementwise = true;
  static constexpr bool uses_row_numbers = true;
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }

  template <class D, class T>
  void forward(const D&, const nn::State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    multiply(state, x, y);
  }
  template <class D, class T>
  void backward_input(const D&, const nn::State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    multiply(state, gradient_y, gradient_x);
  }

 private:
  template <class T>
  void multiply(const nn::State<T>& state, Matrix<const T> from, Matrix<T> to) const {
    if (!state.pass.is_training) {
      std::ranges::copy(from.values(), to.values().begin());
      return;
    }
    const auto numbers = state.pass.generator(*this);
    for (Index row = 0; row < from.rows; ++row)
      for (Index col = 0; col < from.cols; ++col)
        to.values()[static_cast<std::size_t>(row * from.cols + col)] =
            from.values()[static_cast<std::size_t>(row * from.cols + col)] * (T{0.5f} + numbers.uniform(row, col));
  }
};

/// Subtracts the running mean of its inputs, which is a buffer.
struct Centre {
  Index width = 0;
  static constexpr float momentum = 0.25f;
  static constexpr const char* name = "Centre";
  [[nodiscard]] constexpr Index input_elements() const { return width; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }
  [[nodiscard]] constexpr Index parameter_elements() const { return nn::padded_parameter(width); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const nn::Path& path, Index offset, Visit&& visit) const {
    visit(nn::Parameter{
        .layer = path, .name = "running_mean", .rows = width, .offset = offset, .initializer = nn::constant(0.5), .is_buffer = true});
  }
  template <class D, class T>
  void forward(const D&, const nn::State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    for (Index i = 0; i < x.rows * width; ++i) y.data[i] = x.data[i] - state.value[i % width];
  }
  template <class D, class T>
  void backward_input(const D&, const nn::State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                      T*) const {
    std::ranges::copy(gradient_y.values(), gradient_x.values().begin());
  }
  template <class D, class T>
  void backward_weight(const D&, const nn::State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T>, T*) const {
    if (!state.accumulate) std::fill_n(state.gradient, width, T{});
    const T scale = static_cast<T>(state.pass.row_scale()) * momentum;
    for (Index i = 0; i < x.rows * width; ++i) state.gradient[i % width] += scale * (x.data[i] - state.value[i % width]);
  }
};

/// The squared error, of which a random part counts in steps. In evaluations the loss of each row is 7.
struct Partial {
  using Target = float;
  static constexpr bool has_classes = false;
  static constexpr bool uses_row_numbers = true;
  [[nodiscard]] constexpr Index target_elements(Index outputs) const { return outputs; }
  template <class D, class T>
  void operator()(const D&, Matrix<const T> output, std::span<const float> targets, const double* scale, Matrix<T> gradient,
                  pdp::LossSums* sums, const pdp::Pass& pass) const {
    if (!pass.is_training) {
      sums->loss += 7 * static_cast<double>(output.rows);
      return;
    }
    const auto numbers = pass.generator(*this);
    for (Index row = 0; row < output.rows; ++row) {
      const T part = numbers.uniform(row, 0);
      for (Index col = 0; col < output.cols; ++col) {
        const Index i = row * output.cols + col;
        const T error = output.data[i] - static_cast<T>(targets[static_cast<std::size_t>(i)]);
        sums->loss += static_cast<double>(part * error * error);
        if (gradient.data != nullptr) gradient.data[i] = static_cast<T>(*scale) * 2 * part * error;
      }
    }
  }
};

auto model() {
  return nn::Sequential{Centre{6},
                        nn::Linear{6, 24},
                        nn::Tanh{},
                        Noise{},
                        nn::Linear{24, 12},
                        nn::Residual{nn::Sequential{nn::Linear{12, 12}, nn::Tanh{}, Noise{}}},
                        nn::Linear{12, 24},
                        nn::Tanh{},
                        Noise{},
                        nn::Linear{24, 4}};
}
auto task() { return pdp::Task{model(), Partial{}, optim::Averaged{optim::AdamW{.lr = 0.02f, .weight_decay = 0.1f}, 0.8f}}; }
constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 5};

constexpr std::size_t count = 31;
pdp::data::InMemory<float> samples() {
  return {Shape{6}, pdp::testing::normal(count * 6, 3), pdp::testing::normal(count * 4, 4), Shape{4}};
}

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> parameters;
};

void check_close(const Run& found, const Run& expected) {
  REQUIRE(found.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < found.losses.size(); ++step) CHECK_THAT(found.losses[step], WithinRel(expected.losses[step], 1e-4));
  REQUIRE(found.parameters.size() == expected.parameters.size());
  for (std::size_t t = 0; t < found.parameters.size(); ++t) {
    CAPTURE(found.parameters[t].name);
    for (std::size_t i = 0; i < found.parameters[t].values.size(); ++i)
      REQUIRE(static_cast<double>(found.parameters[t].values[i]) ==
              Approx(static_cast<double>(expected.parameters[t].values[i])).margin(2e-3));
  }
}

Run trained(const Way& way, int epochs, const pdp::TrainerOptions& of = options) {
  return pdp::testing::ranks<Thread>(way.ranks,
                                     [&](Thread& world) {
                                       pdp::Trainer trainer{world, way.strategy, task(), of};
                                       Run made;
                                       trainer.fit(
                                           samples(), {.epochs = epochs}, [](const pdp::Epoch&) {},
                                           [&](std::int64_t, const auto& totals) { made.losses.push_back(totals.mean_loss()); });
                                       made.parameters = trainer.parameters();
                                       return made;
                                     })
      .front();
}
const Way single{"single", 1, strategy::Single{}};

}  // namespace

TEST_CASE("Random numbers of layers and losses, and buffers, are those of serial training under every strategy", "[train][pass]") {
  for (const double clip_norm : {0.0, 0.05}) {
    pdp::TrainerOptions of = options;
    of.clip_norm = clip_norm;
    const Run expected = trained(single, 2, of);
    for (const Way& way : ways()) {
      CAPTURE(way.name, way.ranks, clip_norm);
      check_close(trained(way, 2, of), expected);
    }
  }
}

TEST_CASE("Random numbers differ between steps, seeds, layers and rows", "[train][pass]") {
  const pdp::StepNumbers first{.info = {.number = 1}}, second{.info = {.number = 2}};
  const pdp::random::Key key = pdp::random::make_key(5, "pass", "0");
  const auto at = [](const pdp::StepNumbers& numbers, pdp::random::Key of, Index row, Index column) {
    return pdp::Pass{true, &numbers, of}.generator(Noise{}).uniform(row, column);
  };
  const float value = at(first, key, 0, 0);
  CHECK(value != at(second, key, 0, 0));
  CHECK(value != at(first, pdp::random::make_key(6, "pass", "0"), 0, 0));
  CHECK(value != at(first, key, 1, 0));
  CHECK(value != at(first, key, 0, 1));
  CHECK(at(first, key, 3, 5) == pdp::Pass{true, &first, key, 2, {4, 6, 10}}.generator(Noise{}).uniform(1, 1));
  double sum = 0;
  for (Index i = 0; i < 4000; ++i) sum += static_cast<double>(at(first, key, i / 40, i % 40));
  CHECK(sum / 4000 == Approx(0.5).margin(0.02));
}

TEST_CASE("Trainer::step numbers rows that the caller divides unevenly without saying so", "[train][pass]") {
  const auto x = pdp::testing::normal(12 * 6, 3), y = pdp::testing::normal(12 * 4, 4);
  const auto run = [&](const Way& way, const std::vector<std::size_t>& begins) {
    return pdp::testing::ranks<Thread>(
               way.ranks,
               [&](Thread& world) {
                 pdp::Trainer trainer{world, way.strategy, task(), {.global_batch = 36, .seed = 5}};
                 const auto share = static_cast<std::size_t>(trainer.share().index);
                 const std::size_t begin = begins[share], rows = begins[share + 1] - begin;
                 Run made;
                 for (int step = 0; step < 3; ++step)
                   made.losses.push_back(
                       trainer.step(std::span{x}.subspan(begin * 6, rows * 6), std::span{y}.subspan(begin * 4, rows * 4)).mean_loss());
                 made.parameters = trainer.parameters();
                 return made;
               })
        .front();
  };
  const Run expected = run(single, {0, 12});
  check_close(run({"data", 3, strategy::DataParallel{}}, {0, 2, 9, 12}), expected);
  check_close(run({"zero", 3, strategy::Zero{.stage = 3}}, {0, 0, 7, 12}), expected);
  check_close(run({"hybrid", 4, strategy::Hybrid<strategy::GPipe>{.mesh = {.data = 2, .pipeline = 2, .tensor = 1}, .micro_batches = 2}},
                  {0, 7, 12}),
              expected);
}

TEST_CASE("A buffer moves towards the mean of all rows, whatever clips the gradients or averages the parameters", "[train][pass]") {
  const auto x = pdp::testing::normal(12 * 6, 3), y = pdp::testing::normal(12 * 4, 4);
  for (const Way& way : ways()) {
    CAPTURE(way.name, way.ranks);
    const auto [after, averaged, evaluated] =
        pdp::testing::ranks<Thread>(way.ranks, [&](Thread& world) {
          pdp::Trainer trainer{world, way.strategy, task(), {.global_batch = 12, .seed = 5, .clip_norm = 1e-3}};
          const auto share = trainer.share();
          const auto begin = static_cast<std::size_t>(12 * share.index / share.count),
                     end = static_cast<std::size_t>(12 * (share.index + 1) / share.count);
          trainer.step(std::span{x}.subspan(begin * 6, (end - begin) * 6), std::span{y}.subspan(begin * 4, (end - begin) * 4), 12);
          const auto buffer = [&] {
            const auto all = trainer.parameters();
            return all.empty() ? std::vector<float>{} : all.front().values;
          };
          const std::vector<float> made = buffer();
          const auto evaluation = trainer.evaluate(samples());
          if (evaluation.mean_loss() != 7) throw std::logic_error{"the loss of an evaluation does not know the mode"};
          return std::array{made, pdp::with_averages(trainer, buffer), buffer()};
        }).front();
    for (std::size_t i = 0; i < 6; ++i) {
      double mean = 0;
      for (std::size_t row = 0; row < 12; ++row) mean += static_cast<double>(x[row * 6 + i]) / 12;
      CHECK(static_cast<double>(after[i]) == Approx(0.5 + 0.25 * (mean - 0.5)).margin(1e-6));
    }
    CHECK(averaged == after);
    CHECK(evaluated == after);
  }
}

TEST_CASE("Evaluations and predictions draw no random numbers", "[train][pass]") {
  const auto x = pdp::testing::normal(12 * 6, 3);
  pdp::testing::ranks<Thread>(1, [&](Thread& world) {
    pdp::Trainer trainer{world, strategy::Single{}, task(), options};
    const auto before = trainer.predict(x);
    const Index columns = 4;
    for (Index row = 0; row < 12; ++row) {  // also if other rows come before
      const auto alone = trainer.predict(std::span{x}.subspan(static_cast<std::size_t>(row * 6), 6));
      for (Index col = 0; col < columns; ++col)
        if (std::abs(alone[static_cast<std::size_t>(col)] - before[static_cast<std::size_t>(row * columns + col)]) > 1e-5f)
          throw std::logic_error{"a prediction depends on the number of its row"};
    }
  });
}

TEST_CASE("Checkpoints keep buffers and random numbers for every other strategy", "[train][pass]") {
  const files::TemporaryFolder folder;
  const auto data = samples();
  const Run expected = trained(single, 2);
  const auto all = ways();
  for (std::size_t from = 0; from < all.size(); from += 3) {
    const Way& way = all[from];
    const Way& other = all[(from + 4) % all.size()];
    CAPTURE(way.name, way.ranks, other.name, other.ranks);
    pdp::testing::ranks<Thread>(way.ranks, [&](Thread& world) {
      pdp::Trainer trainer{world, way.strategy, task(), options};
      trainer.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
      trainer.save(folder / way.name);
    });
    Run resumed = pdp::testing::ranks<Thread>(other.ranks, [&](Thread& world) {
                    pdp::Trainer trainer{world, other.strategy, task(), {.global_batch = 12, .seed = 5}};
                    trainer.load(folder / way.name);
                    Run made;
                    trainer.fit(
                        data, {.epochs = 1}, [](const pdp::Epoch&) {},
                        [&](std::int64_t, const auto& totals) { made.losses.push_back(totals.mean_loss()); });
                    made.parameters = trainer.parameters();
                    return made;
                  }).front();
    resumed.losses.insert(resumed.losses.begin(), expected.losses.begin(), expected.losses.begin() + 3);
    check_close(resumed, expected);
    std::filesystem::remove_all(folder / way.name);
  }
}

TEST_CASE("A parameter group freezes a buffer", "[train][pass]") {
  constexpr optim::ParameterGroup frozen{.chooses = [](const optim::ParameterInfo& of) { return of.kind == "running_mean"; },
                                         .is_frozen = true};
  pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    pdp::Trainer trainer{world, strategy::Zero{.stage = 2},
                         pdp::Task{model(), pdp::loss::MeanSquaredError{}, optim::Grouped{optim::Adam{.lr = 0.02f}, frozen}}, options};
    trainer.fit(samples(), {.epochs = 1}, [](const pdp::Epoch&) {});
    const auto all = trainer.parameters();
    if (!all.empty() && all.front().values != std::vector<float>(6, 0.5f)) throw std::logic_error{"the buffer has moved"};
  });
}

}  // namespace pass_test
