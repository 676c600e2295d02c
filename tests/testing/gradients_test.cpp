#include <pdp/testing/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <pdp/nn/activation.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"

namespace nn = pdp::nn;
namespace testing = pdp::testing;
using pdp::Index;
using pdp::Matrix;
using pdp::Shape;

namespace gradients_test {

namespace {

/// The faults that a Bent layer may have.
enum class Fault {
  none,
  input,        // backward_input has the wrong factor
  weight,       // so has backward_weight
  columns,      // backward_weight misses a column
  accumulates,  // backward_weight always overwrites
  unwritten,    // forward leaves an element out
  infinite,     // forward divides by zero
  overrun,      // forward writes behind its saved values
  behind_x,     // backward_input writes behind the gradient of x
  other_rows,   // forward uses the row before
  no_rows,      // backward_weight does nothing without rows
  size,         // parameter_elements() is too small
  position,     // the second parameter starts at an unaligned element
};

/// y = weight * x^2 + bias for each column, with x^2 saved. T: the only type that it computes in.
template <class T>
struct Bent {
  static constexpr const char* name = "Bent";

  Index width = 0;
  Fault fault = Fault::none;

  [[nodiscard]] constexpr Index input_elements() const { return width; }
  [[nodiscard]] constexpr Shape output(const Shape&) const { return Shape{width}; }
  [[nodiscard]] constexpr Index parameter_elements() const { return fault == Fault::size ? width : 2 * nn::padded_parameter(width); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return width; }
  [[nodiscard]] constexpr Index bias_offset() const { return fault == Fault::position ? width : nn::padded_parameter(width); }
  template <class Visit>
  constexpr void parameters(const nn::Path& path, Index offset, Visit&& visit) const {
    visit(nn::Parameter{.layer = path, .name = "weight", .rows = width, .offset = offset, .initializer = nn::ones});
    visit(nn::Parameter{.layer = path, .name = "bias", .rows = width, .offset = offset + bias_offset(), .initializer = nn::zeros});
  }

  void forward(const pdp::cpu::Cpu&, const nn::State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c) {
        const Index from = fault == Fault::other_rows && r == 2 ? 1 : r;
        saved[r * width + c] = x.row(from)[c] * x.row(from)[c];
        if (fault == Fault::unwritten && r == 1 && c == 2) continue;
        y.row(r)[c] = state.value[c] * saved[r * width + c] + state.value[bias_offset() + c];
        if (fault == Fault::infinite && c == 1) y.row(r)[c] /= T{0};
      }
    if (fault == Fault::overrun) saved[x.rows * width] = 1;
  }
  void backward_input(const pdp::cpu::Cpu&, const nn::State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c)
        gradient_x.row(r)[c] = (fault == Fault::input ? 1 : 2) * state.value[c] * x.row(r)[c] * gradient_y.row(r)[c];
    if (fault == Fault::behind_x) gradient_x.data[x.rows * width] = 0;
  }
  void backward_weight(const pdp::cpu::Cpu&, const nn::State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                       T* saved) const {
    if (fault == Fault::no_rows && x.rows == 0) return;
    T* const bias = state.gradient + bias_offset();
    if (!state.accumulate || fault == Fault::accumulates) {
      std::fill_n(state.gradient, width, T{});
      std::fill_n(bias, width, T{});
    }
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width - (fault == Fault::columns ? 1 : 0); ++c) {
        state.gradient[c] += (fault == Fault::weight ? 3 : 1) * saved[r * width + c] * gradient_y.row(r)[c];
        bias[c] += gradient_y.row(r)[c];
      }
  }
};
static_assert(nn::LayerOn<Bent<double>, pdp::cpu::Cpu, double> && !nn::LayerOn<Bent<float>, pdp::cpu::Cpu, double>);

/// A layer that reads its output in backward, and declares that it does not.
struct Forgetful : nn::NoParameters {
  static constexpr const char* name = "Forgetful";
  using forgets_output = Forgetful;
  [[nodiscard]] Index input_elements() const { return 0; }
  [[nodiscard]] Shape output(const Shape& input) const { return input; }
  template <class T>
  void forward(const pdp::cpu::Cpu&, const nn::State<T>&, Matrix<const T> x, Matrix<T> y, T*) const {
    for (Index i = 0; i < x.size(); ++i) y.data[i] = std::exp(x.data[i]);
  }
  template <class T>
  void backward_input(const pdp::cpu::Cpu&, const nn::State<T>&, Matrix<const T>, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    for (Index i = 0; i < y.size(); ++i) gradient_x.data[i] = gradient_y.data[i] * y.data[i];
  }
};

/// Returns the text for a layer with a fault, which is the second of a model.
template <class T = double>
std::string told(Fault fault, Index rows = 3) {
  const auto result = testing::check_gradients(nn::Sequential{nn::Tanh{}, Bent<T>{5, fault}}, Shape{5}, {.rows = rows});
  CHECK(static_cast<bool>(result) == result.text().empty());
  return result.text();
}

}  // namespace

TEST_CASE("check_gradients accepts all layers of pdp, in double and in float", "[testing][gradient]") {
  const auto accepts = [](const auto& model, const Shape& input) {
    const Index rows = GENERATE(1, 4);
    CHECK(testing::check_gradients(model, input, {.rows = rows}).text().empty());
    CHECK(testing::check_gradients<float>(model, input, {.rows = rows, .seed = 3}).text().empty());
  };
  accepts(nn::Sequential{nn::Flatten{}, nn::Linear{6, 5}, nn::Tanh{}, nn::Linear{.in = 5, .out = 3, .bias = false}, nn::Relu{}},
          Shape{2, 3});
  accepts(nn::Linear{7, 1}, Shape{7});
  accepts(nn::Repeat{2, nn::Residual{nn::Sequential{nn::Linear{3, 4}, nn::Tanh{}, nn::Linear{4, 3}}}}, Shape{3});
  accepts(nn::Sequential{nn::Replicate{}, nn::ColumnParallel{3, 4}, nn::RowParallel{4, 2}, nn::AllReduce{}}, Shape{3});
  accepts(nn::MultilayerPerceptron{{4, 3, 2}, nn::Relu{}, {.initializer = nn::zeros}}, Shape{4});
}

TEST_CASE("check_gradients accepts a layer of one type and inputs of a given range", "[testing][gradient]") {
  CHECK(told<double>(Fault::none).empty());
  CHECK(told<float>(Fault::none).empty());
  CHECK(told(Fault::none, 1).empty());
  CHECK(testing::check_gradients(Bent<double>{5}, Shape{5}, {.mean = 10, .deviation = 0.1}).text().empty());
}

TEST_CASE("check_gradients names the layer, the element, the value found and the value expected", "[testing][gradient]") {
  const auto begins = [](Fault fault, const std::string& words) {
    CHECK_THAT(told<double>(fault), StartsWith("layer 1 (Bent): " + words));
    CHECK_THAT(told<float>(fault), StartsWith("layer 1 (Bent): " + words));
  };
  begins(Fault::input, "backward_input gives ");
  CHECK_THAT(told(Fault::input),
             Contains(" as the gradient of element 0 of row 0 of x; expected ") && EndsWith(", the central difference of forward"));
  begins(Fault::weight, "backward_weight gives ");
  CHECK_THAT(told(Fault::weight), Contains(" as the gradient of element 0 of 1.weight; expected "));
  begins(Fault::columns, "backward_weight gives 0 as the gradient of element 4 of 1.weight; expected ");
  begins(Fault::accumulates, "backward_weight with accumulate = true gives ");
  begins(Fault::unwritten, "forward gives NaN as element 2 of row 1 of y; expected a finite value");
  begins(Fault::overrun, "forward writes outside of y and of the saved values");
  begins(Fault::behind_x, "backward writes outside of the gradients and of the saved values");
  begins(Fault::other_rows, "forward gives ");
  CHECK_THAT(told(Fault::other_rows), Contains(" as element 0 of row 2 of y; expected ") && EndsWith(", the value for that row alone"));
  begins(Fault::no_rows,
         "backward_weight with 0 rows and accumulate = false gives NaN as the gradient of element 0 of 1.weight; expected 0");
  begins(Fault::size, "parameters() describes 1.bias as elements 16 to 20, but parameter_elements() is 5; expected at least 32");
  begins(Fault::position, "parameters() describes 1.bias from element 5 on; expected a multiple of 16");
  CHECK_THAT(told(Fault::infinite), Contains("as element 1 of row 0 of y; expected a finite value"));
}

TEST_CASE("check_gradients names a single layer without a number, and a tensor that backward must not read", "[testing][gradient]") {
  CHECK_THAT(testing::check_gradients(Forgetful{}, Shape{3}).text(),
             StartsWith("the layer (Forgetful): backward_input gives NaN as the gradient of element 0 of row 0 of x; expected ") &&
                 EndsWith("(y held NaN, since the layer declares forgets_output)"));
}

TEST_CASE("check_gradients rejects 0 rows and layers that do not fit together", "[testing][gradient][bad input]") {
  CHECK_THROWS_WITH(testing::check_gradients(nn::Tanh{}, Shape{3}, {.rows = 0}), "a check of gradients has rows = 0; expected 1 or more");
  CHECK_THROWS_AS(testing::check_gradients(nn::Linear{3, 4}, Shape{5}), pdp::ShapeError);
}

}  // namespace gradients_test
