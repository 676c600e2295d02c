#include <pdp/loss/cross_entropy.hpp>

#include <cmath>
#include <vector>

#include <pdp/cpu/cpu.hpp>

#include "catch.hpp"
#include "support.hpp"

using pdp::Index;
using pdp::LossSums;
using pdp::Matrix;
using pdp::cpu::Cpu;
using pdp::loss::CrossEntropy;

static_assert(pdp::loss::Loss<CrossEntropy, Cpu, float> && pdp::loss::Loss<CrossEntropy, Cpu, double>);

namespace {

std::vector<std::int32_t> some_classes(Index rows, Index cols) {
  std::vector<std::int32_t> classes;
  for (Index r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>((r * 7 + 3) % cols));
  return classes;
}

}  // namespace

TEST_CASE("CrossEntropy takes one class per sample and has an accuracy", "[loss]") {
  static_assert(std::same_as<CrossEntropy::Target, std::int32_t> && CrossEntropy::has_classes);
  static_assert(CrossEntropy{}.target_elements(10) == 1);
  SUCCEED();
}

TEST_CASE("CrossEntropy of equal outputs is the logarithm of their number", "[loss]") {
  const Index cols = GENERATE(as<Index>{}, 1, 2, 10, 1000);
  const std::vector<float> outputs(static_cast<std::size_t>(cols), 5.0f);
  const std::vector<std::int32_t> classes{static_cast<std::int32_t>(cols - 1)};
  const LossSums sums =
      support::sums_of(CrossEntropy{}, Matrix<const float>{outputs.data(), 1, cols}, std::span{classes}, 1.0f, Matrix<float>{});
  CHECK(sums.loss == Approx(std::log(static_cast<double>(cols))).margin(1e-6));
}

TEST_CASE("The gradient of CrossEntropy equals central differences times the scale", "[loss][gradient]") {
  const Index rows = GENERATE(as<Index>{}, 1, 5), cols = GENERATE(as<Index>{}, 1, 3, 10);
  const double scale = GENERATE(1.0, 0.125);
  auto outputs = support::normal<double>(rows * cols, 1);
  const auto classes = some_classes(rows, cols);
  std::vector<double> gradient(outputs.size());
  const auto loss = [&](Matrix<double> to) {
    return support::sums_of(CrossEntropy{}, Matrix<const double>{outputs.data(), rows, cols}, std::span{classes}, scale, to).loss;
  };
  loss({gradient.data(), rows, cols});

  constexpr double h = 1e-5;
  std::vector<double> expected;
  for (double& output : outputs) {
    const double kept = output;
    output = kept + h;
    const double above = loss({});
    output = kept - h;
    const double below = loss({});
    output = kept;
    expected.push_back(scale * (above - below) / (2 * h));
  }
  CHECK(support::difference(gradient, expected) < 1e-9);
}

TEST_CASE("CrossEntropy of the shares of a batch adds up to that of the whole", "[loss]") {
  constexpr Index rows = 11, cols = 5;
  const auto outputs = support::normal(rows * cols, 2);
  const auto classes = some_classes(rows, cols);
  const float scale = 1.0f / rows;
  std::vector<float> whole_gradient(outputs.size()), gradient(outputs.size());
  const LossSums whole = support::sums_of(CrossEntropy{}, Matrix<const float>{outputs.data(), rows, cols}, std::span{classes}, scale,
                                          Matrix<float>{whole_gradient.data(), rows, cols});
  for (const auto& cuts : {std::vector<Index>{0, 11, 11}, std::vector<Index>{0, 1, 4, 11}, std::vector<Index>{0, 0, 5, 5, 11}}) {
    LossSums sums;
    for (std::size_t share = 0; share + 1 < cuts.size(); ++share) {
      const Index first = cuts[share], count = cuts[share + 1] - first;
      const LossSums part = support::sums_of(CrossEntropy{}, Matrix<const float>{outputs.data() + first * cols, count, cols},
                                             std::span{classes}.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                                             scale, Matrix<float>{gradient.data() + first * cols, count, cols});
      sums.loss += part.loss;
      sums.correct += part.correct;
    }
    CHECK(sums.loss == Approx(whole.loss).epsilon(1e-12));
    CHECK(sums.correct == whole.correct);
    CHECK(gradient == whole_gradient);
  }
}

TEST_CASE("CrossEntropy with label_smoothing gives the formula's loss and gradient, and divided columns the same", "[loss][tensor]") {
  constexpr Index rows = 7, own = 19, cols = 2 * own;
  const double smoothing = GENERATE(0.0, 0.1, 0.75);
  const CrossEntropy of{.ignore_index = -100, .label_smoothing = smoothing};
  const auto outputs = support::normal<double>(rows * cols, 1);
  auto classes = some_classes(rows, cols);
  classes[3] = -100;
  const double scale = 0.125;
  std::vector<double> gradient(outputs.size()), expected;
  const LossSums sums = support::sums_of(of, Matrix<const double>{outputs.data(), rows, cols}, std::span{classes}, scale,
                                         Matrix<double>{gradient.data(), rows, cols});
  double loss = 0;
  for (Index r = 0; r < rows; ++r) {
    const double* const x = outputs.data() + r * cols;
    const std::int32_t label = classes[static_cast<std::size_t>(r)];
    double total = 0;
    for (Index c = 0; c < cols; ++c) total += std::exp(x[c]);
    for (Index c = 0; c < cols; ++c) {
      const double wanted = smoothing / cols + (c == label ? 1 - smoothing : 0);
      if (label >= 0) loss -= wanted * (x[c] - std::log(total));
      expected.push_back(label < 0 ? 0 : scale * (std::exp(x[c]) / total - wanted));
    }
  }
  CHECK(sums.loss == Approx(loss).epsilon(1e-12));
  CHECK(support::difference(gradient, expected) < 1e-13);

  constexpr Index numbers = CrossEntropy::part_numbers;
  std::vector<double> halves[2], parts(2 * rows * numbers);
  for (Index part = 0; part < 2; ++part) {
    for (Index r = 0; r < rows; ++r)
      halves[part].insert(halves[part].end(), outputs.begin() + r * cols + part * own, outputs.begin() + r * cols + (part + 1) * own);
    of.part(Cpu{}, Matrix<const double>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
            Matrix<double>{parts.data() + part * rows * numbers, rows, numbers});
  }
  for (Index part = 0; part < 2; ++part) {
    std::vector<double> found(rows * own, 9), wanted;
    LossSums joined;
    of.join(Cpu{}, Matrix<const double>{halves[part].data(), rows, own}, std::span<const std::int32_t>{classes}, part * own, cols,
            Matrix<const double>{parts.data(), 2 * rows, numbers}, &scale, Matrix<double>{found.data(), rows, own}, &joined);
    for (Index r = 0; r < rows; ++r)
      wanted.insert(wanted.end(), expected.begin() + r * cols + part * own, expected.begin() + r * cols + (part + 1) * own);
    CHECK(joined.loss == Approx(loss).epsilon(1e-12));
    CHECK(joined.correct == sums.correct);
    CHECK(support::difference(found, wanted) < 1e-13);
  }
}

TEST_CASE("CrossEntropy with label_smoothing gives the mean and the gradient of PyTorch's formula", "[loss]") {
  // by the formula of torch.nn.functional.cross_entropy(x, classes, label_smoothing=0.2), and its derivative
  const std::vector<float> outputs{1, 2, 0, 3};
  const std::vector<std::int32_t> classes{0, 1};
  std::vector<float> gradient(4);
  const LossSums sums = support::sums_of(CrossEntropy{.label_smoothing = 0.2}, Matrix<const float>{outputs.data(), 2, 2},
                                         std::span{classes}, 0.5f, Matrix<float>{gradient.data(), 2, 2});
  CHECK(sums.loss / 2 == Approx(0.78092450).epsilon(1e-6));
  CHECK(support::difference(gradient, std::vector<double>{-0.31552929, 0.31552929, -0.02628706, 0.02628706}) < 1e-6);
  CHECK(sums.correct == 1);
}

TEST_CASE("CrossEntropy rejects a label_smoothing that is not from 0 to below 1", "[loss][bad input]") {
  const std::vector<float> outputs{3, 1};
  const std::vector<std::int32_t> classes{0};
  for (const double wrong : {-0.1, 1.0, std::nan("")})
    CHECK_THAT(support::message_of<pdp::ConfigError>([&] {
                 support::sums_of(CrossEntropy{.label_smoothing = wrong}, Matrix<const float>{outputs.data(), 1, 2}, std::span{classes},
                                  1.0f, Matrix<float>{});
               }).value_or(""),
               Contains("the label_smoothing of CrossEntropy is ") && Contains("expected a number from 0 to below 1"));
}
