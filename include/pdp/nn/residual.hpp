#pragma once

#include <utility>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/layer_requirements.hpp>
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
  static_assert(!any_is_placed<LeafTypes<B>>,
                "pdp: tensor-parallel layers cannot be inside nn::Residual: schedules treat it as one layer, which exchanges "
                "no messages");
  static_assert(!any_is_view<LeafTypes<B>>, "pdp: nn::Flatten cannot be inside nn::Residual, as a residual keeps the shape of its input");

 public:
  static constexpr const char* name = "Residual";
  using forgets_output = Residual;
  using Inner = LeafTypes<B>;
  static constexpr bool uses_row_numbers = any_uses_row_numbers<Inner>;

  constexpr explicit Residual(B block) : block_{std::move(block)} {
    const Flow through = flow(block_, Shape{});
    check_widths(through);
    const Index in = nn::input_elements(block_), out = through.shape.last();
    if (in != 0 && through.shape.rank() > 0 && !through.shape.rank_is_known() && out != in) refuse(in, out);
    if (in != 0 && through.shape.known() && through.shape.elements() != in) refuse(in, through.shape.elements());
  }

  [[nodiscard]] constexpr Index input_elements() const { return nn::input_elements(block_); }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return flow(block_, input).misfit; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const {
    const Flow through = flow(block_, input);
    check_widths(through);
    if (input.known() && through.shape.elements() != input.elements()) refuse(input.elements(), through.shape.elements());
    return input;
  }
  [[nodiscard]] constexpr Index parameter_elements() const {
    Index elements = 0;
    for_each_leaf(block_, {}, [&](const auto& layer, const Path&) { elements += layer.parameter_elements(); });
    return elements;
  }
  /// Returns the number of elements, for one sample, of the outputs of the block's layers, of their gradients, and of the values that the
  /// layers save.
  [[nodiscard]] constexpr Index saved_elements(const Shape& input) const {
    const Inside end = inside(leaves(block_), input);
    return 2 * end.boundary + end.kept;
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    for_each_leaf(block_, Container<B> ? path : path.child(0), [&](const auto& layer, const Path& at) {
      layer.parameters(at, offset, visit);
      offset += layer.parameter_elements();
    });
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    const Memory<T> memory{inside(leaves(block_), shape(state, x)), saved, x.rows};
    Inside at{.shape = shape(state, x)};
    Matrix<const T> in = x;
    for_each_leaf(block_, {}, [&](const auto& layer, const Path&) {
      const Matrix<T> out = memory.output(at.boundary, layer.output(at.shape).elements());
      layer.forward(device, at.bind(state), in, out, memory.kept(at));
      in = out;
      at = after(layer, at);
    });
    add(device, x, in, y);
  }

  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T* saved) const {
    backward(shape(state, x), x, gradient_y, saved,
             [&](const auto& layer, const Inside& at, Matrix<const T> in, Matrix<const T> out, Matrix<const T> gradient_out,
                 Matrix<T> gradient_in, T* kept) {
               layer.backward_input(device, at.bind(state), in, out, gradient_out, at.leaf == 0 ? gradient_x : gradient_in, kept);
             });
    add(device, Matrix<const T>{gradient_x}, gradient_y, gradient_x);
  }

  /// Must follow backward_input, which leaves the gradients between the block's layers in `saved`.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                       T* saved) const {
    backward(shape(state, x), x, gradient_y, saved,
             [&](const auto& layer, const Inside& at, Matrix<const T> in, Matrix<const T> out, Matrix<const T> gradient_out, Matrix<T>,
                 T* kept) { layer.backward_weight(device, at.bind(state), in, out, gradient_out, kept); });
  }

 private:
  /// The position of a leaf in the block, with the sizes of all that comes before it, for one sample.
  struct Inside {
    Index leaf = 0;
    Shape shape{};       // of the leaf's input
    Index boundary = 0;  // outputs of the leaves before
    Index kept = 0;      // values that the leaves before save
    Index parameters = 0;

    template <class T>
    [[nodiscard]] State<T> bind(const State<T>& state) const {
      State<T> own = state;
      own.value += parameters;
      if (own.gradient != nullptr) own.gradient += parameters;
      own.pass.key = random::make_key(state.pass.key.value, leaf);
      own.input = shape;
      return own;
    }
  };

  template <class L>
  static constexpr Inside after(const L& layer, const Inside& at) {
    const Shape out = layer.output(at.shape);
    return {at.leaf + 1, out, at.boundary + out.elements(), at.kept + layer.saved_elements(at.shape),
            at.parameters + layer.parameter_elements()};
  }
  [[nodiscard]] constexpr Inside inside(Index number, const Shape& input) const {
    Inside at{.shape = input};
    for_each_leaf(block_, {}, [&](const auto& layer, const Path&) {
      if (at.leaf < number) at = after(layer, at);
    });
    return at;
  }

  /// The saved memory for `rows` samples: outputs of the leaves, their gradients, and what the leaves save.
  template <class T>
  struct Memory {
    Inside end;
    T* saved;
    Index rows;

    [[nodiscard]] Matrix<T> output(Index boundary, Index width) const { return {saved + boundary * rows, rows, width}; }
    [[nodiscard]] Matrix<T> gradient(Index boundary, Index width) const { return {saved + (end.boundary + boundary) * rows, rows, width}; }
    [[nodiscard]] T* kept(const Inside& at) const { return saved + (2 * end.boundary + at.kept) * rows; }
  };

  /// Calls visit with each leaf and its tensors, from the last to the first.
  template <class T, class Visit>
  void backward(const Shape& input, Matrix<const T> x, Matrix<const T> gradient_y, T* saved, Visit&& visit) const {
    const Index count = leaves(block_);
    const Memory<T> memory{inside(count, input), saved, x.rows};
    for (Index number = count - 1; number >= 0; --number) {
      const Inside at = inside(number, input);
      leaf(block_, number, [&](const auto& layer) {
        const Index in_width = at.shape.elements(), out_width = layer.output(at.shape).elements();
        const Matrix<const T> in = number == 0 ? x : Matrix<const T>{memory.output(at.boundary - in_width, in_width)};
        const Matrix<const T> gradient_out = number == count - 1 ? gradient_y : Matrix<const T>{memory.gradient(at.boundary, out_width)};
        const Matrix<T> gradient_in = number == 0 ? Matrix<T>{} : memory.gradient(at.boundary - in_width, in_width);
        visit(layer, at, in, memory.output(at.boundary, out_width), gradient_out, gradient_in, memory.kept(at));
      });
    }
  }

  static constexpr void refuse(Index in, Index out) { detail::a_residual_block_gives_another_width_than_it_takes(in, out); }
  /// Returns the shape of a sample of x.
  template <class T>
  static constexpr Shape shape(const State<T>& state, Matrix<const T> x) {
    return state.input.known() ? state.input : Shape{x.cols};
  }

  B block_;
};

/// A Residual of a Residual is one inside another, not a copy.
template <class B>
explicit Residual(Residual<B>) -> Residual<Residual<B>>;

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/residual.hpp>
#endif
