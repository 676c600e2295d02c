#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_extents_of_a_reshape_must_be_1_or_more(const Shape& shape);

}  // namespace detail

/// The same values as samples of another shape: [...] -> [the shape]. A view, as Flatten. PyTorch's Unflatten.
/// Throws ConfigError unless all extents are 1 or more; in a constant, this is a compile error.
class Reshape : public NoParameters {
 public:
  static constexpr const char* name = "Reshape";
  static constexpr bool is_view = true;

  constexpr explicit Reshape(const Shape& shape) : shape_{shape} {
    bool is_valid = shape.rank() > 0;
    for (int axis = 0; axis < shape.rank(); ++axis) is_valid = is_valid && shape[axis] >= 1;
    if (!is_valid) detail::the_extents_of_a_reshape_must_be_1_or_more(shape);
  }
  template <class... Extents>
  requires(sizeof...(Extents) >= 1 && sizeof...(Extents) <= Shape::max_rank) constexpr explicit Reshape(Extents... extents)
      : Reshape{Shape{extents...}} {}

  [[nodiscard]] constexpr Index input_elements() const { return shape_.elements(); }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (!input.known() || input.elements() == shape_.elements()) return {};
    return {"values a sample", shape_.elements(), input.elements()};
  }
  [[nodiscard]] constexpr Shape output(const Shape&) const { return shape_; }

  template <class D, class T>
  void forward(const D&, const State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_input(const D&, const State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>, T*) const {}

 private:
  Shape shape_;
};
static_assert(Layer<Reshape> && ChecksShape<Reshape> && is_view<Reshape>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/reshape.hpp>
#endif
