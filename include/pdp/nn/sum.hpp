#pragma once

#include <utility>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/branches.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_branches_of_a_sum_give_different_shapes(const Shape& first, const Shape& other, Index number);

/// Returns whether two shapes, which may be known in part, can be equal.
constexpr bool may_be_equal(const Shape& a, const Shape& b) {
  if (!a.rank_is_known() || !b.rank_is_known()) {
    const Index last_a = a.last(), last_b = b.last();
    return last_a == Shape::any || last_b == Shape::any || last_a == last_b;
  }
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis)
    if (a[axis] != Shape::any && b[axis] != Shape::any && a[axis] != b[axis]) return false;
  return true;
}

}  // namespace detail

/// y = a(x) + b(x) + ..., for blocks that give the same shape. A schedule sees it as one layer, as it does a Residual, so the branches
/// never cross a boundary. Parameters have the names of the blocks in a PyTorch ModuleList: "3.0.weight" for the first of layer 3.
///
///   nn::Sum{nn::Sequential{nn::Conv2d{16, 32, 3, {.stride = 2, .padding = 1}}, nn::Relu{}}, nn::Conv2d{16, 32, 1, {.stride = 2}}}
///
/// Throws ShapeError if the shapes differ; in a constant, this is a compile error.
template <class... B>
class Sum : public detail::Branches<B...> {
  using Base = detail::Branches<B...>;

 public:
  static constexpr const char* name = "Sum";
  using forgets_output = Sum;

  constexpr explicit Sum(B... blocks) : Base{std::move(blocks)...} { static_cast<void>(output(Shape{})); }

  /// Returns the sum of the blocks that map(block) returns for each of them.
  template <class Map>
  [[nodiscard]] constexpr auto with_blocks(Map&& map) const {
    return Base::with_blocks([](auto... mapped) { return Sum<decltype(mapped)...>{std::move(mapped)...}; }, map);
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    Shape of_first{};
    this->each([&](const auto& block, Index number) {
      const Flow through = block.flow(input);
      check_widths(through);
      if (number == 0)
        of_first = through.shape;
      else if (!detail::may_be_equal(of_first, through.shape))
        detail::the_branches_of_a_sum_give_different_shapes(of_first, through.shape, number);
    });
    return of_first;
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    Matrix<const T> first;
    this->with_memory(state, detail::shape_of(state, x), x.rows, saved,
                      [&](const auto& block, Index number, const State<T>& own, T* memory) {
                        const Matrix<const T> out = this->rest_of_forward(block, number, device, own, x, memory);
                        if (number == 0)
                          first = out;
                        else
                          add(device, number == 1 ? first : Matrix<const T>{y}, out, y);
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
    this->backward_branches(device, state, detail::shape_of(state, x), x, gradient_x, saved, part,
                            [&](const auto&, Index, T*) { return gradient_y; });
  }
  /// Must follow backward_input.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                       T* saved) const {
    this->with_memory(state, detail::shape_of(state, x), x.rows, saved, [&](const auto& block, Index, const State<T>& own, T* memory) {
      block.backward_weight(device, own, x, gradient_y, memory);
    });
  }
};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/sum.hpp>
#endif
