#pragma once

#include <utility>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/inner_block.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_residual_block_gives_another_width_than_it_takes(Index in, Index out);

}  // namespace detail

/// y = x + block(x). The block's output must have as many values as its input. A schedule sees it as one layer,
/// so a skip connection never crosses a boundary. The tensors inside the block are saved with each micro-batch in flight. He et al., "Deep
/// residual learning for image recognition", CVPR 2016.
template <class B>
class Residual {
  static_assert(detail::is_or_resembles_block<B>, "pdp: the argument of nn::Residual must be a layer or a container of layers");
  static_assert(
      detail::begins_and_ends_in_full<B>(),
      "pdp: the block of an nn::Residual must take its input in full on each rank of a tensor-parallel group and give its output "
      "so: begin with nn::Replicate before ColumnParallel and the like, and end with nn::AllReduce behind RowParallel and the like");
  static_assert(!any_reshapes<LeafTypes<B>>,
                "pdp: nn::Flatten and nn::Reshape cannot be inside nn::Residual, as a residual keeps the shape of its input");

 public:
  static constexpr const char* name = "Residual";
  using forgets_output = Residual;
  using Inner = LeafTypes<B>;
  static constexpr bool uses_row_numbers = any_uses_row_numbers<Inner>;
  static constexpr bool sums_over_batch = any_sums_over_batch<Inner>;

  constexpr explicit Residual(B block) : block_{std::move(block)} {
    const Flow through = block_.flow(Shape{});
    check_widths(through);
    const Index in = block_.input_elements(), out = through.shape.last();
    if (in != 0 && !through.shape.rank_is_known() && out != Shape::any && out != in) refuse(in, out);
    if (in != 0 && through.shape.known() && through.shape.elements() != in) refuse(in, through.shape.elements());
  }

  /// Returns the layer or container that x is added to.
  [[nodiscard]] constexpr const B& block() const { return block_.block(); }
  [[nodiscard]] constexpr Index input_elements() const { return block_.input_elements(); }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return block_.flow(input).misfit; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    const Flow through = block_.flow(input);
    check_widths(through);
    if (input.known() && through.shape.elements() != input.elements()) refuse(input.elements(), through.shape.elements());
    return input;
  }
  [[nodiscard]] constexpr Index parameter_elements() const { return block_.parameter_elements(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape& input) const { return block_.saved_elements(input); }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return block_.products(input); }
  [[nodiscard]] constexpr Index pauses() const requires detail::any_pauses_inside<Inner> { return block_.pauses(); }
  [[nodiscard]] constexpr Index batch_sums() const { return block_.batch_sums(); }
  [[nodiscard]] constexpr PauseSum sums_of_pause(const Shape& input, Index pause, bool backward) const {
    return block_.sums_of_pause(input, pause, backward);
  }
  [[nodiscard]] constexpr bool exchanges() const requires detail::any_exchanges_inside<Inner> { return block_.exchanges(); }
  [[nodiscard]] constexpr Part inner_part() const { return block_.inner_part(); }
  template <class T>
  [[nodiscard]] Matrix<T> exchanged(const Shape& input, Index rows, Matrix<T> gradient_x, T* saved, Index pause, bool backward) const {
    return block_.exchanged(input, rows, gradient_x, saved, pause, backward);
  }
  [[nodiscard]] constexpr Index batch_values(const Shape& input) const { return block_.batch_values(input); }
  [[nodiscard]] constexpr bool pauses_in_micro_batches() const { return block_.pauses_in_micro_batches(); }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    block_.parameters(detail::names_children<B> ? path : path.child(0), offset, visit);
  }

  template <class D, class T>
  void forward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T>, T* saved, Index part) const {
    block_.forward_part(device, state, x, saved, part);
  }
  template <class D, class T>
  void backward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                     Matrix<T> gradient_x, T* saved, Index part) const {
    block_.backward_part(device, state, x, gradient_y, gradient_x, saved, part);
  }
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    add(device, x, block_.forward(device, state, x, saved), y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T* saved) const {
    block_.backward_input(device, state, x, gradient_y, gradient_x, saved);
    add(device, Matrix<const T>{gradient_x}, gradient_y, gradient_x);
  }
  /// Must follow backward_input.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                       T* saved) const {
    block_.backward_weight(device, state, x, gradient_y, saved);
  }

 private:
  static constexpr void refuse(Index in, Index out) { detail::a_residual_block_gives_another_width_than_it_takes(in, out); }

  detail::InnerBlock<B> block_;
};

/// A Residual of a Residual is one inside another, not a copy.
template <class B>
explicit Residual(Residual<B>) -> Residual<Residual<B>>;

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/residual.hpp>
#endif
