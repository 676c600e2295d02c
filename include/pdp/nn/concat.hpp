#pragma once

#include <array>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/branches.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_branches_of_a_concat_give_shapes_that_do_not_fit(const Shape& first, const Shape& other, Index number, bool is_first);

}  // namespace detail

/// The dimension along which Concat joins samples: the first one, such as the channels of images, or the last one.
enum class JoinedDimension { first, last };

/// The outputs of several blocks for the same input, side by side. All dimensions but the joined one must be equal. As of nn::Sum, a
/// schedule sees it as one layer, and parameters have the names of the blocks in a PyTorch ModuleList.
///
///   nn::Concat{nn::Conv2d{16, 8, 1}, nn::Conv2d{16, 24, 3, {.padding = 1}}}          [16, h, w] -> [32, h, w]
///   nn::Concat{nn::JoinedDimension::last, nn::Linear{8, 4}, nn::Linear{8, 6}}        [..., 8] -> [..., 10]
///
/// Throws ShapeError if the shapes do not fit; in a constant, this is a compile error.
template <class... B>
class Concat : public detail::Branches<B...> {
  using Base = detail::Branches<B...>;

 public:
  static constexpr const char* name = "Concat";
  using forgets_output = Concat;

  constexpr explicit Concat(B... blocks) : Concat{JoinedDimension::first, std::move(blocks)...} {}
  constexpr explicit Concat(JoinedDimension joined, B... blocks) : Base{std::move(blocks)...}, joined_{joined} {
    static_cast<void>(output(Shape{}));
  }

  /// Returns the same of the blocks that map(block) returns for each of them.
  template <class Map>
  [[nodiscard]] constexpr auto with_blocks(Map&& map) const {
    return Base::with_blocks([this](auto... mapped) { return Concat<decltype(mapped)...>{joined_, std::move(mapped)...}; }, map);
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    Shape joined{};
    this->each([&](const auto& block, Index number) {
      const Flow through = block.flow(input);
      check_widths(through);
      joined = number == 0 ? through.shape : join(joined, through.shape, number);
    });
    return joined;
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    const Shape input = detail::shape_of(state, x);
    Index column = 0;
    this->with_memory(state, input, x.rows, saved, [&](const auto& block, Index number, const State<T>& own, T* memory) {
      const Shape out = block.flow(input).shape;
      copy_columns(device, own_rows(this->rest_of_forward(block, number, device, own, x, memory), out), 0, whole_rows(y, input), column,
                   width(out));
      column += width(out);
    });
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T* saved) const {
    backward_part(device, state, x, y, gradient_y, gradient_x, saved, this->all_pauses());
  }
  template <class D, class T>
  void backward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                     Matrix<T> gradient_x, T* saved, Index part) const {
    const Shape input = detail::shape_of(state, x);
    Index column = 0;
    this->backward_branches(device, state, input, x, gradient_x, saved, part, [&](const auto& block, Index, T* memory) {
      const Shape out = block.flow(input).shape;
      const Matrix<T> own = block.gradient_of_output(input, x.rows, memory);
      copy_columns(device, whole_rows(gradient_y, input), column, own_rows(own, out), 0, width(out));
      column += width(out);
      return Matrix<const T>{own};
    });
  }
  /// Must follow backward_input.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T>, T* saved) const {
    const Shape input = detail::shape_of(state, x);
    this->with_memory(state, input, x.rows, saved, [&](const auto& block, Index, const State<T>& own, T* memory) {
      block.backward_weight(device, own, x, Matrix<const T>{block.gradient_of_output(input, x.rows, memory)}, memory);
    });
  }

 private:
  [[nodiscard]] constexpr bool joins_first() const { return joined_ == JoinedDimension::first; }
  /// Returns the shape of two samples side by side.
  [[nodiscard]] constexpr Shape join(const Shape& a, const Shape& b, Index number) const {
    if (!a.rank_is_known() || !b.rank_is_known())
      return !joins_first() && a.last() != Shape::any && b.last() != Shape::any ? Shape{Shape::leading, a.last() + b.last()}
                                                                                : Shape{Shape::leading, Shape::any};
    const int axis = joins_first() ? 0 : a.rank() - 1;
    std::array<Index, Shape::max_rank> extents{};
    for (int each = 0; each < a.rank(); ++each) {
      const Index of_a = a[each], of_b = each < b.rank() ? b[each] : 0;
      const bool is_known = of_a != Shape::any && of_b != Shape::any;
      if (a.rank() != b.rank() || (each != axis && is_known && of_a != of_b))
        detail::the_branches_of_a_concat_give_shapes_that_do_not_fit(a, b, number, joins_first());
      extents[as_size(each)] = each != axis ? (of_a == Shape::any ? of_b : of_a) : is_known ? of_a + of_b : Shape::any;
    }
    return a.rank() == 1   ? Shape{extents[0]}
           : a.rank() == 2 ? Shape{extents[0], extents[1]}
           : a.rank() == 3 ? Shape{extents[0], extents[1], extents[2]}
                           : Shape{extents[0], extents[1], extents[2], extents[3]};
  }
  /// Returns the number of values that are side by side: a whole sample, or a vector of its last dimension.
  [[nodiscard]] constexpr Index width(const Shape& of) const { return joins_first() ? of.elements() : of.last(); }
  template <class T>
  [[nodiscard]] constexpr Matrix<T> own_rows(Matrix<T> samples, const Shape& of) const {
    return vectors(samples, width(of));
  }
  template <class T>
  [[nodiscard]] constexpr Matrix<T> whole_rows(Matrix<T> samples, const Shape& input) const {
    return vectors(samples, width(output(input)));
  }

  JoinedDimension joined_;
};
template <class... B>
explicit Concat(JoinedDimension, B...) -> Concat<B...>;

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/concat.hpp>
#endif
