#include <pdp/core/affine.hpp>
#include <pdp/core/attention.hpp>
#include <pdp/core/batch_normalisation.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/group_normalisation.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/testing/values.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace cpu_bfloat16_test {

// Compares operations on bfloat16 with those on floats of the same values. The results must be those of the floats, rounded once, to the
// bit. Sums over rows are floats in both cases. They are added in another order, so they may differ a little.

using pdp::BFloat16, pdp::Index, pdp::Matrix;
using pdp::cpu::Cpu;

namespace {

/// A matrix in both types, with the same values. The last value is a guard, which must stay as it is.
class Both {
 public:
  Both(Index rows, Index cols, int seed, float mean = 0) : rows_{rows}, cols_{cols} {
    for (const float each : support::normal(rows * cols + 1, seed)) {
      narrow_.push_back(BFloat16{each + mean});
      floats_.push_back(narrow_.back());
    }
  }
  template <class T>
  [[nodiscard]] Matrix<const T> in() const {
    return {data<T>(), rows_, cols_};
  }
  template <class T>
  [[nodiscard]] Matrix<T> out() {
    return {const_cast<T*>(data<T>()), rows_, cols_};
  }
  template <class T>
  [[nodiscard]] const T* data() const {
    if constexpr (std::same_as<T, float>)
      return floats_.data();
    else
      return narrow_.data();
  }
  /// Returns whether the results in bfloat16 are those in float, rounded.
  [[nodiscard]] bool agree() const {
    std::vector<BFloat16> rounded;
    for (const float each : floats_) rounded.push_back(BFloat16{each});
    return std::memcmp(rounded.data(), narrow_.data(), rounded.size() * sizeof(BFloat16)) == 0;
  }
  /// Returns how far the results in bfloat16 are from those in float.
  [[nodiscard]] double difference() const { return support::difference(std::vector<float>(narrow_.begin(), narrow_.end()), floats_); }
  /// Makes the numbers equal again, so that they can be inputs.
  void make_equal() { floats_.assign(narrow_.begin(), narrow_.end()); }

 private:
  Index rows_, cols_;
  std::vector<float> floats_;
  std::vector<BFloat16> narrow_;
};

/// Calls operation.operator()<T>() with floats and with bfloat16.
template <class Operation>
void with_both(const Operation& operation) {
  operation.template operator()<float>();
  operation.template operator()<BFloat16>();
}

/// Sums of floats that an operation adds up from either type.
struct Sums {
  std::vector<float> of_floats, of_narrow;
  explicit Sums(Index count) : of_floats{support::normal(count + 1, 77)}, of_narrow{of_floats} {}
  template <class T>
  [[nodiscard]] float* data() {
    return std::same_as<T, float> ? of_floats.data() : of_narrow.data();
  }
  [[nodiscard]] double difference() const { return support::difference(of_narrow, of_floats); }
};

/// Sizes of matrices; the last ones need several blocks of rows.
struct Size {
  Index rows, cols;
};
constexpr Size sizes[]{{0, 3}, {1, 1}, {5, 7}, {64, 33}, {300, 300}, {3000, 40}};

/// Returns a device for each kind of registers, and one with two threads.
std::vector<Cpu> devices() {
  std::vector<Cpu> all{Cpu{.threads = 2}};
  for (const auto registers : support::registers()) all.push_back(Cpu{.registers = registers});
  return all;
}

}  // namespace

TEST_CASE("Conversions between float and bfloat16 are those of the type, for all numbers, lengths and registers", "[cpu]") {
  std::vector<BFloat16> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) all.push_back(std::bit_cast<BFloat16>(static_cast<std::uint16_t>(bits)));
  std::vector<float> floats;
  std::mt19937 random{5};
  for (int i = 0; i < 100'000; ++i) floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const float each :
       {0.0f, -0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
        std::bit_cast<float>(0x7f800001U), std::bit_cast<float>(0x3f808000U), std::bit_cast<float>(0x3f818000U)})
    floats.push_back(each);
  const auto is_same = [](const auto& a, const auto& b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0; };
  for (const auto registers : support::registers()) {
    const Cpu cpu{.registers = registers};
    std::vector<float> widened(all.size()), expected(all.begin(), all.end());
    convert(cpu, Matrix<const BFloat16>{all.data(), 1, pdp::as_index(all.size())},
            Matrix<float>{widened.data(), 1, pdp::as_index(all.size())});
    CHECK(is_same(widened, expected));
    for (const Index count : {Index{0}, Index{1}, Index{15}, Index{33}, pdp::as_index(floats.size())}) {
      std::vector<BFloat16> found(floats.size()), rounded(floats.size());
      for (std::size_t i = 0; i < pdp::as_size(count); ++i) rounded[i] = BFloat16{floats[i]};
      convert(cpu, Matrix<const float>{floats.data(), 1, count}, Matrix<BFloat16>{found.data(), 1, count});
      CHECK(is_same(found, rounded));
    }
  }
}

TEST_CASE("Elementwise operations in bfloat16 are those in float, rounded once", "[cpu]") {
  for (const auto& [rows, cols] : sizes) {
    CAPTURE(rows, cols);
    const Both a{rows, cols, 1}, b{rows, cols, 2}, c{rows, cols, 3}, row{1, cols, 4};
    const pdp::StepNumbers numbers{.info = {.number = 3}};
    const pdp::Pass pass{.is_training = true, .numbers = &numbers, .key = {7}, .first_row = 11};
    const auto check = [&](const auto& operation) {
      for (const Cpu& cpu : devices()) {
        Both out{rows, cols, 9};
        with_both([&]<class T> { operation(cpu, a.in<T>(), b.in<T>(), c.in<T>(), out.out<T>()); });
        CHECK(out.agree());
      }
    };
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { relu(cpu, x, y); });
    check([](const Cpu& cpu, auto y, auto of_y, auto, auto of_x) { relu_backward(cpu, y, of_y, of_x); });
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { hyperbolic_tangent(cpu, x, y); });
    check([](const Cpu& cpu, auto y, auto of_y, auto, auto of_x) { hyperbolic_tangent_backward(cpu, y, of_y, of_x); });
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { map(cpu, pdp::nn::functions::Gelu{}, x, y); });
    check([](const Cpu& cpu, auto x, auto y, auto of_y, auto of_x) { map_backward(cpu, pdp::nn::functions::Gelu{}, x, y, of_y, of_x); });
    check([](const Cpu& cpu, auto x, auto y, auto, auto z) { add(cpu, x, y, z); });
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { copy(cpu, x, y); });
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { copy_columns(cpu, x, x.cols / 2, y, 0, x.cols - x.cols / 2); });
    check([&](const Cpu& cpu, auto x, auto, auto, auto y) { drop(cpu, pass, 0.3f, x, y); });
    check([](const Cpu& cpu, auto x, auto, auto, auto y) { softmax(cpu, x, y); });
    check([](const Cpu& cpu, auto y, auto of_y, auto, auto of_x) { softmax_backward(cpu, y, of_y, of_x); });
    // In place.
    const auto read = []<class T>(Matrix<T> matrix) { return Matrix<const T>{matrix}; };
    check([&](const Cpu& cpu, auto, auto, auto, auto y) { relu(cpu, read(y), y); });
    check([&](const Cpu& cpu, auto, auto, auto, auto y) { map(cpu, pdp::nn::functions::Silu{}, read(y), y); });
    check([&](const Cpu& cpu, auto, auto, auto, auto y) { drop(cpu, pass, 0.3f, read(y), y); });
    check([&](const Cpu& cpu, auto, auto, auto, auto y) { softmax(cpu, read(y), y); });
    check([&](const Cpu& cpu, auto y, auto, auto, auto of_x) { softmax_backward(cpu, y, read(of_x), of_x); });
    check([&](const Cpu& cpu, auto x, auto, auto, auto y) { add(cpu, read(y), x, y); });
    check([&](const Cpu& cpu, auto, auto, auto, auto y) {
      using T = std::remove_cvref_t<decltype(*y.data)>;
      add_row(cpu, row.data<T>(), y);
    });
    for (const Cpu& cpu : devices())
      for (const bool accumulate : {false, true}) {
        Sums sums{cols};
        with_both([&]<class T> { sum_rows(cpu, a.in<T>(), sums.data<T>(), accumulate); });
        CHECK(sums.difference() < 1e-4);
      }
  }
  // An empty matrix may have no memory.
  std::vector<float> sums{1, 2, 3};
  sum_rows(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 3}, sums.data(), true);
  CHECK(sums == std::vector<float>{1, 2, 3});
  sum_rows(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 3}, sums.data(), false);
  CHECK(sums == std::vector<float>(3));
  relu(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 3}, Matrix<BFloat16>{nullptr, 0, 3});
  softmax(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 3}, Matrix<BFloat16>{nullptr, 0, 3});

  std::vector<float> floats(100);
  std::vector<BFloat16> narrow(100);
  fill_uniform(Cpu{}, pdp::random::Key{5}, 0.5, pdp::random::Elements{}, std::span{floats});
  fill_uniform(Cpu{}, pdp::random::Key{5}, 0.5, pdp::random::Elements{}, std::span{narrow});
  for (std::size_t i = 0; i < 100; ++i) CHECK(static_cast<float>(narrow[i]) == static_cast<float>(BFloat16{floats[i]}));
}

TEST_CASE("Products in bfloat16 are those in float, rounded once, and products over rows are floats", "[cpu]") {
  struct Product {
    Index m, n, k;
  };
  using pdp::cpu::Products;
  for (const auto products : {Products::best, Products::eigen, Products::sixteen_bits})
    for (const auto& [m, n, k] : {Product{1, 1, 1},
                                  {5, 3, 7},
                                  {64, 10, 33},
                                  {3, 5, 0},
                                  {0, 4, 4},
                                  {1500, 20, 60},
                                  Product{9, 300, 1100},
                                  Product{700, 530, 5},
                                  Product{1100, 600, 512},
                                  Product{1100, 600, 600}})
      for (const bool accumulate : {false, true}) {
        CAPTURE(m, n, k, accumulate);
        const Cpu cpu{.threads = m > 1000 ? 2 : 1, .products = products};
        const Both a{m, k, 1}, b{k, n, 2}, b_transposed{n, k, 3}, a_transposed{k, m, 4};
        Both plain{m, n, 5}, nt{m, n, 6};
        Sums tn{m * n};
        with_both([&]<class T> {
          gemm(cpu, a.in<T>(), b.in<T>(), plain.out<T>(), accumulate);
          gemm_nt(cpu, a.in<T>(), b_transposed.in<T>(), nt.out<T>(), accumulate);
          gemm_tn(cpu, a_transposed.in<T>(), b.in<T>(), Matrix<float>{tn.data<T>(), m, n}, accumulate);
        });
        // Blocks of terms, and oneDNN's kernels for 16 bits, may add up in another order.
        constexpr double one_rounding = 1.0 / 256 + 1e-4;
        CHECK(plain.difference() < one_rounding);
        CHECK(nt.difference() < one_rounding);
        CHECK(tn.difference() < 1e-4);

        if (accumulate) continue;
        const Both bias{1, n, 7};
        // oneDNN rounds before the bias is added.
        const bool rounds_twice = has_onednn(cpu) && (products == Products::sixteen_bits || pdp::cpu::onednn::prefers_bfloat16());
        for (const auto activation : {pdp::Activation::none, pdp::Activation::relu})
          for (const bool has_bias : {false, true}) {
            Both y{m, n, 8};
            with_both([&]<class T> { affine(cpu, a.in<T>(), b.in<T>(), has_bias ? bias.data<T>() : nullptr, y.out<T>(), activation); });
            CHECK(y.difference() < (rounds_twice ? 0.1 : one_rounding));
          }
      }
  std::vector<float> gradient{1, 2};
  gemm_tn(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 1}, Matrix<const BFloat16>{nullptr, 0, 2}, Matrix<float>{gradient.data(), 1, 2}, false);
  CHECK(gradient == std::vector<float>(2));
  gemm(Cpu{}, Matrix<const BFloat16>{nullptr, 0, 4}, Matrix<const BFloat16>{nullptr, 4, 0}, Matrix<BFloat16>{nullptr, 0, 0}, false);
}

TEST_CASE("Normalisation in bfloat16 is that in float, rounded once", "[cpu]") {
  const auto check = [](const pdp::GroupNormalisation& how, Index rows, Index positions, bool has_bias) {
    CAPTURE(how.channels, how.groups, how.centred, rows, positions, has_bias);
    const Index cols = how.channels * positions;
    const Both x{rows, cols, 1, 4}, gradient_y{rows, cols, 2}, weight{1, how.channels, 3}, bias{1, how.channels, 4};
    Both y{rows, cols, 5}, gradient_x{rows, cols, 6};
    with_both([&]<class T> { normalise(Cpu{}, how, x.in<T>(), weight.data<T>(), has_bias ? bias.data<T>() : nullptr, y.out<T>()); });
    CHECK(y.agree());
    with_both([&]<class T> { normalise_backward_input(Cpu{}, how, x.in<T>(), weight.data<T>(), gradient_y.in<T>(), gradient_x.out<T>()); });
    CHECK(gradient_x.agree());
    for (const bool accumulate : {false, true}) {
      Sums of_weight{how.channels}, of_bias{how.channels};
      with_both([&]<class T> {
        normalise_backward_weight(Cpu{}, how, x.in<T>(), gradient_y.in<T>(), of_weight.data<T>(), has_bias ? of_bias.data<T>() : nullptr,
                                  accumulate);
      });
      CHECK(of_weight.difference() == 0);
      CHECK(of_bias.difference() == 0);
    }
  };
  for (const Index rows : {0, 3, 70})
    for (const bool centred : {false, true}) {
      check({.channels = 33, .eps = 0.25, .centred = centred}, rows, 1, true);
      check({.channels = 6, .groups = 3, .centred = centred}, rows, 7, false);
    }

  for (const auto& [rows, channels, positions] : {std::array<Index, 3>{0, 3, 2}, {5, 3, 1}, {4, 70, 1}, {6, 3, 20}}) {
    CAPTURE(rows, channels, positions);
    const pdp::BatchNormalisation how{.channels = channels, .positions = positions, .eps = 0.1};
    const Index cols = channels * positions;
    const Both x{rows, cols, 1, 2}, gradient_y{rows, cols, 2}, weight{1, channels, 3}, bias{1, channels, 4}, mean{1, channels, 5},
        variance{1, channels, 6, 5};
    std::vector<double> of_floats(pdp::as_size(how.all_sums())), of_narrow = of_floats;
    const auto sums = [&]<class T>(const T*) { return std::same_as<T, float> ? of_floats.data() : of_narrow.data(); };
    Both y{rows, cols, 7}, again{rows, cols, 8}, gradient_x{rows, cols, 9};
    const pdp::StepNumbers numbers{.row_scale = 0.25};
    Sums changes{4 * channels};
    with_both([&]<class T> {
      double* const all = sums(x.data<T>());
      const double* const read = all;
      const T* const none = nullptr;
      batch_statistics(Cpu{}, how, x.in<T>(), mean.data<T>(), all);
      batch_gradient_sums(Cpu{}, how, x.in<T>(), mean.data<T>(), gradient_y.in<T>(), all);
      batch_normalise(Cpu{}, how, x.in<T>(), mean.data<T>(), read, weight.data<T>(), bias.data<T>(), y.out<T>());
      normalise_channels(Cpu{}, how, x.in<T>(), none, variance.data<T>(), weight.data<T>(), none, again.out<T>());
      batch_normalise_backward(Cpu{}, how, x.in<T>(), mean.data<T>(), read, weight.data<T>(), gradient_y.in<T>(), gradient_x.out<T>());
      batch_parameter_gradients(Cpu{}, how, rows, 0.1, &numbers, mean.data<T>(), variance.data<T>(), read, channels, changes.data<T>(),
                                true);
    });
    if (rows > 0) CHECK(of_narrow == of_floats);
    CHECK(y.agree());
    CHECK(again.agree());
    CHECK(gradient_x.agree());
    if (rows > 0) CHECK(changes.difference() == 0);
  }
}

TEST_CASE("Attention in bfloat16 is that in float, rounded once", "[cpu]") {
  for (const bool causal : {false, true})
    for (const auto& how : {pdp::Attention{1, 1, 1, 2, causal}, {5, 4, 2, 6, causal}, {130, 2, 1, 8, causal}})
      for (const Index rows : {0, 2, 31}) {
        CAPTURE(how.positions, how.heads, causal, rows);
        const Index x_cols = how.positions * how.row(), y_cols = how.positions * how.out();
        const Both x{rows, x_cols, 1}, gradient_y{rows, y_cols, 2};
        Both y{rows, y_cols, 3}, gradient_x{rows, x_cols, 4}, sums{rows, how.positions * how.heads * pdp::attention_sums, 5};
        with_both([&]<class T> { attend(Cpu{}, how, x.in<T>(), y.out<T>(), sums.out<T>().data); });
        CHECK(y.agree());
        const auto narrow = sums.in<BFloat16>();
        for (Index i = 0; i < narrow.size(); i += pdp::attention_sums)  // in two numbers, 16 bits are enough
          REQUIRE(narrow.data[i] + narrow.data[i + 1] == Approx(sums.data<float>()[i]).epsilon(1e-4).margin(1e-4));
        y.make_equal(), sums.make_equal();
        with_both(
            [&]<class T> { attend_backward(Cpu{}, how, x.in<T>(), y.in<T>(), gradient_y.in<T>(), sums.data<T>(), gradient_x.out<T>()); });
        CHECK(gradient_x.agree());
        Both turned{rows, x_cols, 6};
        with_both([&]<class T> { rotate(Cpu{}, how, pdp::Rotation{.base = 100}, turned.out<T>()); });
        CHECK(turned.agree());
      }
}

TEST_CASE("Embeddings in bfloat16 copy the rows, and their gradients are sums of floats", "[cpu]") {
  constexpr Index vocabulary = 9, width = 19, count = 40;
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * i * 7 % vocabulary));
  const Matrix<const std::int32_t> which{tokens.data(), 1, count};
  const pdp::TokenRows rows{2, vocabulary};
  const Both weight{5, width, 1}, gradient_y{1, count * width, 2};
  Both y{1, count * width, 3};
  with_both([&]<class T> { embed(Cpu{}, which, rows, weight.in<T>(), y.out<T>()); });
  CHECK(y.agree());
  for (const bool accumulate : {false, true}) {
    Sums gradient{5 * width};
    with_both([&]<class T> {
      embed_backward(Cpu{}, which, rows, gradient_y.in<T>(), Matrix<float>{gradient.data<T>(), 5, width}, accumulate);
    });
    CHECK(gradient.difference() == 0);
  }
}

TEST_CASE("Convolutions and pooling in bfloat16 are those in float, rounded once", "[cpu]") {
  const pdp::Windows vertical{.extent = 9, .size = 3, .stride = 2, .padding = 1}, horizontal{.extent = 30, .size = 2, .dilation = 2};
  for (const Index rows : {0, 3, 200})
    for (const auto& how : {pdp::Convolution{.channels = 1, .filters = 6, .vertical = vertical, .horizontal = horizontal},
                            pdp::Convolution{.channels = 6, .filters = 4, .groups = 2, .vertical = vertical, .horizontal = horizontal}}) {
      CAPTURE(rows, how.channels);
      // A kernel of oneDNN may depend on the number of rows.
      const Cpu cpu{.products = pdp::cpu::Products::eigen};
      const Index weights = how.filters * how.depth();
      const Both x{rows, how.channels * how.positions(), 1}, gradient_y{rows, how.filters * how.windows(), 2}, weight{1, weights, 3},
          bias{1, how.filters, 4};
      Both y{rows, how.filters * how.windows(), 5}, without_bias{rows, how.filters * how.windows(), 6},
          gradient_x{rows, how.channels * how.positions(), 7};
      Sums of_weight{weights}, of_bias{how.filters}, added{weights};
      with_both([&]<class T> {
        const T* const none = nullptr;
        float* const no_sums = nullptr;
        convolve(cpu, how, x.in<T>(), weight.data<T>(), bias.data<T>(), y.out<T>());
        convolve(cpu, how, x.in<T>(), weight.data<T>(), none, without_bias.out<T>());
        convolve_backward_input(cpu, how, weight.data<T>(), gradient_y.in<T>(), gradient_x.out<T>());
        convolve_backward_weight(cpu, how, x.in<T>(), gradient_y.in<T>(), of_weight.data<T>(), of_bias.data<T>(), false);
        convolve_backward_weight(cpu, how, x.in<T>(), gradient_y.in<T>(), added.data<T>(), no_sums, true);
      });
      CHECK(y.agree());
      CHECK(without_bias.agree());
      CHECK(gradient_x.agree());
      CHECK(of_weight.difference() < 1e-4);
      CHECK(of_bias.difference() < 1e-4);
      CHECK(added.difference() < 1e-4);
    }

  const pdp::Pooling plain{
      .channels = 5, .vertical = {.extent = 8, .size = 2, .stride = 2}, .horizontal = {.extent = 31, .size = 3, .padding = 1}};
  const pdp::AdaptivePooling adaptive{.channels = 5, .vertical = {.extent = 8, .count = 3}, .horizontal = {.extent = 31, .count = 4}};
  for (const Index rows : {0, 1, 90}) {
    CAPTURE(rows);
    const Both x{rows, 5 * plain.positions(), 1}, gradient_y{rows, 5 * plain.windows(), 2}, of_adaptive{rows, 5 * adaptive.windows(), 3};
    Both most{rows, 5 * plain.windows(), 4}, of_most{rows, 5 * plain.positions(), 5}, mean{rows, 5 * plain.windows(), 6},
        of_mean{rows, 5 * plain.positions(), 7}, means{rows, 5 * adaptive.windows(), 8}, of_means{rows, 5 * plain.positions(), 9};
    with_both([&]<class T> {
      max_pool(Cpu{}, plain, x.in<T>(), most.out<T>());
      max_pool_backward(Cpu{}, plain, x.in<T>(), most.in<T>(), gradient_y.in<T>(), of_most.out<T>());
      average_pool(Cpu{}, plain, x.in<T>(), mean.out<T>());
      average_pool_backward(Cpu{}, plain, gradient_y.in<T>(), of_mean.out<T>());
      average_pool(Cpu{}, adaptive, x.in<T>(), means.out<T>());
      average_pool_backward(Cpu{}, adaptive, of_adaptive.in<T>(), of_means.out<T>());
    });
    for (const Both* each : {&most, &of_most, &mean, &of_mean, &means, &of_means}) CHECK(each->agree());
  }
}

TEST_CASE("Losses of bfloat16 are those of float, with rounded gradients", "[cpu]") {
  for (const auto& [rows, cols] : sizes) {
    CAPTURE(rows, cols);
    const Both x{rows, cols, 1};
    auto y = support::normal(rows * cols, 2);
    if (rows > 3) y[pdp::as_size(2 * cols)] = std::numeric_limits<float>::quiet_NaN();
    const Matrix<const float> target{y.data(), rows, cols};
    std::vector<std::int32_t> classes;
    for (Index row = 0; row < rows; ++row) classes.push_back(static_cast<std::int32_t>(row % 4 == 3 ? -100 : row * 5 % cols));
    const double scale = 0.125;
    const auto check = [&](const auto& loss) {
      Both gradient{rows, cols, 3};
      pdp::LossSums of_floats, of_narrow, without_gradient;
      with_both([&]<class T> { loss(x.in<T>(), gradient.out<T>(), std::same_as<T, float> ? &of_floats : &of_narrow); });
      loss(x.in<BFloat16>(), Matrix<BFloat16>{}, &without_gradient);
      CHECK(gradient.agree());
      for (const auto& found : {of_narrow, without_gradient}) {
        CHECK(found.loss == Approx(of_floats.loss).epsilon(1e-6));
        CHECK(found.correct == of_floats.correct);
      }
    };
    for (const double smoothing : {0.0, 0.1})
      check([&](auto logits, auto gradient, auto* sums) {
        softmax_cross_entropy(Cpu{}, logits, classes, &scale, gradient, sums, -100, smoothing);
      });
    const std::vector<float> class_weights = support::normal(cols, 7);
    const double sum = std::accumulate(class_weights.begin(), class_weights.end(), 0.0);
    check([&](auto logits, auto gradient, auto* sums) {
      softmax_cross_entropy(Cpu{}, logits, classes, &scale, gradient, sums, -100, 0.1, pdp::ClassWeights{class_weights, sum});
    });
    for (const bool ignores_nan : {false, true}) {
      if (!ignores_nan && rows > 3) continue;  // the sum is NaN
      check([&](auto output, auto gradient, auto* sums) { squared_error(Cpu{}, output, target, &scale, gradient, sums, ignores_nan); });
      check([&](auto output, auto gradient, auto* sums) {
        elementwise_loss(Cpu{}, pdp::loss::functions::Huber{}, output, target, &scale, gradient, sums, ignores_nan);
      });
    }
    check([&](auto logits, auto gradient, auto* sums) {  // in two parts of equal width
      if (cols % 2 != 0) return;
      std::vector<float> parts(pdp::as_size(2 * rows * 5));
      using Logits = decltype(logits);
      std::array<std::vector<std::remove_cvref_t<decltype(*logits.data)>>, 2> halves, slopes;
      for (const Index half : {0, 1}) {
        auto& values = halves[pdp::as_size(half)];
        values.resize(pdp::as_size(rows * cols / 2));
        copy_columns(Cpu{}, logits, half * cols / 2, Matrix{values.data(), rows, cols / 2}, 0, cols / 2);
        softmax_part(Cpu{}, Logits{values.data(), rows, cols / 2}, classes, half * cols / 2, cols,
                     Matrix<float>{parts.data() + half * rows * 5, rows, 5}, -100, 0.1);
      }
      for (const Index half : {0, 1}) {
        auto& of_half = slopes[pdp::as_size(half)];
        of_half.resize(pdp::as_size(gradient.size() / 2));
        pdp::LossSums found;
        decltype(gradient) slope{gradient.data == nullptr ? nullptr : of_half.data(), gradient.rows, gradient.cols / 2};
        softmax_cross_entropy_of_parts(Cpu{}, Logits{halves[pdp::as_size(half)].data(), rows, cols / 2}, classes, half * cols / 2,
                                       Matrix<const float>{parts.data(), 2 * rows, 5}, &scale, slope, &found, -100, 0.1, cols);
        if (gradient.data != nullptr)
          copy_columns(Cpu{}, std::type_identity_t<Logits>{of_half.data(), rows, cols / 2}, 0, gradient, half * cols / 2, cols / 2);
        *sums = found;
      }
    });
  }
  const Both x{3000, 40, 1};
  std::vector<std::int32_t> classes(3000);
  classes[2500] = 40;
  pdp::LossSums sums;
  const double scale = 1;
  CHECK_THROWS_WITH(softmax_cross_entropy(Cpu{}, x.in<BFloat16>(), classes, &scale, Matrix<BFloat16>{}, &sums), Contains("row 2500"));
}

}  // namespace cpu_bfloat16_test
