#pragma once

#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

namespace detail {

/// Adds a table with a vector for each position: y = x + table, [rows, positions, width] -> [rows, positions, width].
struct AddedPositions {
  Index positions = 0;  // at most; samples may have fewer
  Index width = 0;

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (const Misfit of_last = misfit_of_last(width, input, false)) return of_last;
    if (!input.rank_is_known()) return {};
    if (input.rank() != 2) return {"dimensions", 2, input.rank()};
    if (input[0] > positions) return {.of = "positions", .expected = positions, .found = input[0], .is_most = true};
    return {};
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.rank() > 0 ? input : Shape{Shape::any, width}; }
  [[nodiscard]] constexpr Index parameter_elements() const { return padded_parameter(positions * width); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape&) const { return 0; }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    if (y.data != x.data) copy(device, x, y);
    add_row(device, state.value, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                      T*) const {
    if (gradient_x.data != gradient_y.data) copy(device, gradient_y, gradient_x);
  }
};

/// Returns a value of the table of SinusoidalPositions. `width`: values of a position.
[[nodiscard]] double sinusoidal_position(random::Key key, Index element, Index positions, Index width);

}  // namespace detail

/// Adds a vector that is learned for each position: y = x + weight, [rows, positions, width] -> [rows, positions, width]. `weight` has the
/// shape [positions, width], as that of a PyTorch Embedding of positions.
struct LearnedPositions : detail::AddedPositions {
  static constexpr const char* name = "LearnedPositions";
  using works_in_place = LearnedPositions;

  Initializer initializer = normal(1);  // PyTorch's default

  constexpr LearnedPositions(Index most, Index values, Initializer initial = normal(1))
      : detail::AddedPositions{most, values}, initializer{initial} {}

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{path, "weight", positions, width, false, offset, width, positions, initializer});
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    sum_rows(device, gradient_y, state.gradient, state.accumulate);
    const Index elements = positions * width;
    if (!state.accumulate && gradient_y.cols < elements)
      zero(device, std::span{state.gradient + gradient_y.cols, as_size(elements - gradient_y.cols)});
  }
};
static_assert(Layer<LearnedPositions> && ChecksShape<LearnedPositions>);

/// Adds sines and cosines of each position: y = x + table, [rows, positions, width] -> [rows, positions, width]. Vaswani et al., "Attention
/// is all you need", NeurIPS 2017: value 2 i of position p is sin(p / 10000^(2 i / width)), and value 2 i + 1 the cosine. The table is the
/// buffer `pe` of shape [positions, width], which never changes.
struct SinusoidalPositions : detail::AddedPositions {
  static constexpr const char* name = "SinusoidalPositions";
  using works_in_place = SinusoidalPositions;

  constexpr SinusoidalPositions(Index most, Index values) : detail::AddedPositions{most, values} {}

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{.layer = path,
                    .name = "pe",
                    .rows = positions,
                    .cols = width,
                    .offset = offset,
                    .fan_in = positions,
                    .fan_out = width,
                    .initializer = own_values(detail::sinusoidal_position),
                    .is_buffer = true});
  }
  /// The change of the buffer: none.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T>, Matrix<const T>, Matrix<const T>, T*) const {
    if (!state.accumulate) zero(device, std::span{state.gradient, as_size(positions * width)});
  }
};
static_assert(Layer<SinusoidalPositions> && ChecksShape<SinusoidalPositions>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/positions.hpp>
#endif
