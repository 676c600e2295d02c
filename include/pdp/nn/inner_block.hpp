#pragma once

#include <utility>

#include <pdp/nn/block.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/inner_position.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn::detail {

/// Returns the shape of a sample of x.
template <class T>
constexpr Shape shape_of(const State<T>& state, Matrix<const T> x) {
  return state.input.known() ? state.input : Shape{x.cols};
}

/// A block inside a layer, such as that of a Residual. Its tensors are in memory that the layer saves: for each sample the outputs of its
/// leaves, their gradients, and the values that the leaves save. State, rows and memory are those of the block. The block takes its input
/// in full on each rank, and gives its output so. An exchange between its leaves is a pause: it computes nothing, and the ranks add up the
/// tensor there.
template <class B>
class InnerBlock {
  static_assert(!any_takes_tokens<LeafTypes<B>> && !any_is_tied<LeafTypes<B>>,
                "pdp: a layer that takes tokens, such as nn::Embedding, must be the first layer of the model; neither it nor an "
                "nn::TiedOutput can be inside a Residual, Sum or Concat");

 public:
  using Leaves = LeafTypes<B>;

  constexpr explicit InnerBlock(B block) : block_{std::move(block)} {
    check_placements(block_);
    for_each_leaf(block_, {}, totals_);
  }

  [[nodiscard]] constexpr const B& block() const { return block_; }
  [[nodiscard]] constexpr Index input_elements() const { return nn::input_elements(block_); }
  [[nodiscard]] constexpr Flow flow(const Shape& input) const { return nn::flow(block_, input); }
  [[nodiscard]] constexpr Index parameter_elements() const { return totals_.parameters; }
  [[nodiscard]] constexpr Index saved_elements(const Shape& input) const {
    const InnerPosition end = inside(leaves(block_), input);
    return 2 * end.boundary + end.kept;
  }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return work(input).products; }
  /// The pauses of the leaves, one after another (see nn/pauses.hpp).
  [[nodiscard]] constexpr Index pauses() const { return totals_.pauses; }
  [[nodiscard]] constexpr bool exchanges() const { return inner_part().count > 1; }
  [[nodiscard]] constexpr Part inner_part() const { return totals_.part; }
  [[nodiscard]] constexpr Index batch_sums() const { return totals_.sums; }
  [[nodiscard]] constexpr Index batch_values(const Shape& input) const { return work(input).batch_values; }
  [[nodiscard]] constexpr bool pauses_in_micro_batches() const { return totals_.pauses_in_micro_batches; }
  [[nodiscard]] constexpr PauseSum sums_of_pause(const Shape& input, Index pause, bool backward) const {
    PauseSum found{};
    visit_pause(input, pause, backward, [&]<class L>(const L& layer, const InnerPosition& at, Index own) {
      if constexpr (!is_view<L>) {
        found = nn::sums_of_pause(layer, at.shape, own, backward);
        found.first += at.sums;
      } else if ((exchange_of(layer) == Exchange::gradient_of_input) == backward) {
        found = {SummedOver::parts, 0, at.shape.elements()};
      }
    });
    return found;
  }
  /// Returns the tensor that the ranks add up in a pause over parts. `gradient_x`: the gradient of the block's input.
  template <class T>
  [[nodiscard]] Matrix<T> exchanged(const Shape& input, Index rows, Matrix<T> gradient_x, T* saved, Index pause, bool backward) const {
    const InnerMemory<T> memory{inside(leaves(block_), input), saved, rows};
    Matrix<T> found;
    visit_pause(input, pause, backward, [&]<class L>(const L& layer, const InnerPosition& at, Index own) {
      const Index width = at.shape.elements(), before = at.boundary - width;
      const Matrix<T> gradient_in = at.boundary == 0 ? gradient_x : memory.gradient(before, width);
      if constexpr (is_view<L>)
        found = backward ? gradient_in : memory.output(before, width);
      else if constexpr (ExchangesInside<L>)
        found = layer.exchanged(at.shape, rows, gradient_in, memory.kept(at), own, backward);
    });
    return found;
  }

  /// The path is that of the block. A block of one layer has its path.
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    for_each_leaf(block_, path, [&](const auto& layer, const Path& at) {
      layer.parameters(at, offset, visit);
      offset += layer.parameter_elements();
    });
  }

  /// Runs the last part of forward, or in an evaluation all of it (see nn/pauses.hpp). Returns the block's output, which is in `saved`.
  template <class D, class T>
  Matrix<const T> forward(const D& device, const State<T>& state, Matrix<const T> x, T* saved) const {
    return forward_part(device, state, x, saved, last_part(state));
  }
  /// Runs a part of forward; nothing if there is no such part.
  template <class D, class T>
  Matrix<const T> forward_part(const D& device, const State<T>& state, Matrix<const T> x, T* saved, Index part) const {
    const InnerMemory<T> memory{inside(leaves(block_), shape_of(state, x)), saved, x.rows};
    InnerPosition at{.shape = shape_of(state, x)};
    Matrix<const T> in = x;
    for_each_leaf(block_, {}, [&]<class L>(const L& layer, const Path& path) {
      at.is_frozen = path.is_frozen();
      if constexpr (!is_view<L>) {
        const Matrix<T> out = memory.output(at.boundary, layer.output(at.shape).elements());
        if (part == all_parts)
          layer.forward(device, at.bind(state), in, out, memory.kept(at));
        else if (at.pauses <= part && part <= at.pauses + nn::pauses(layer))
          nn::forward_part(layer, device, at.bind(state), in, out, memory.kept(at), part - at.pauses);
        in = out;
      }
      at = position_after(layer, at);
    });
    return in;
  }
  /// Run the last part of backward, or another one. In a frozen layer, the last part is all of it, as in forward of an evaluation.
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                      T* saved) const {
    backward_part(device, state, x, gradient_y, gradient_x, saved, last_part(state));
  }
  template <class D, class T>
  void backward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> gradient_y, Matrix<T> gradient_x, T* saved,
                     Index part) const {
    const Index count = pauses();
    backward(shape_of(state, x), x, gradient_y, saved,
             [&](const auto& layer, const InnerPosition& at, Matrix<const T> in, Matrix<const T> out, Matrix<const T> gradient_out,
                 Matrix<T> gradient_in, T* kept) {
               const Index own = nn::pauses(layer), begin = count - at.pauses - own;
               const Matrix<T> gradient = at.boundary == 0 ? gradient_x : gradient_in;
               if (part == all_parts)
                 layer.backward_input(device, at.bind(state), in, out, gradient_out, gradient, kept);
               else if (begin <= part && part <= begin + own)
                 nn::backward_part(layer, device, at.bind(state), in, out, gradient_out, gradient, kept, part - begin);
             });
  }
  /// Must follow backward_input, which leaves the gradients between the layers in `saved`.
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> gradient_y, T* saved) const {
    backward(shape_of(state, x), x, gradient_y, saved,
             [&](const auto& layer, const InnerPosition& at, Matrix<const T> in, Matrix<const T> out, Matrix<const T> gradient_out,
                 Matrix<T>, T* kept) {
               if (!at.is_frozen) layer.backward_weight(device, at.bind(state), in, out, gradient_out, kept);
             });
  }
  /// Returns memory in `saved` for the gradient of the block's output, which no other function uses.
  template <class T>
  [[nodiscard]] Matrix<T> gradient_of_output(const Shape& input, Index rows, T* saved) const {
    const InnerPosition end = inside(leaves(block_), input);
    const Index width = end.shape.elements();
    return InnerMemory<T>{end, saved, rows}.gradient(end.boundary - width, width);
  }

 private:
  static constexpr Index all_parts = -1;  // for layers that do not pause in this pass
  template <class T>
  [[nodiscard]] constexpr Index last_part(const State<T>& state) const {
    return state.pass.is_training || exchanges() ? pauses() : all_parts;
  }
  [[nodiscard]] constexpr InnerWork work(const Shape& input) const {
    InnerWork work{.shape = input};
    for_each_leaf(block_, {}, work);
    return work;
  }

  /// Calls visit(leaf, InnerPosition, number of the pause among those of the leaf) with the leaf to which a pause belongs.
  template <class Visit>
  constexpr void visit_pause(const Shape& input, Index pause, bool backward, Visit&& visit) const {
    const Index count = pauses();
    InnerPosition at{.shape = input};
    for_each_leaf(block_, {}, [&](const auto& layer, const Path&) {
      const Index own = pauses_of_leaf(layer), begin = backward ? count - at.pauses - own : at.pauses;
      if (begin <= pause && pause < begin + own) visit(layer, std::as_const(at), pause - begin);
      at = position_after(layer, at);
    });
  }

  [[nodiscard]] constexpr InnerPosition inside(Index number, const Shape& input) const {
    GoToLeaf go{.at = {.shape = input}, .leaves_before = number};
    for_each_leaf(block_, {}, go);
    return go.at;
  }

  /// Calls visit with each leaf and its tensors, from the last to the first.
  template <class T, class Visit>
  void backward(const Shape& input, Matrix<const T> x, Matrix<const T> gradient_y, T* saved, Visit&& visit) const {
    const Index count = leaves(block_);
    const InnerMemory<T> memory{inside(count, input), saved, x.rows};
    for (Index number = count - 1; number >= 0; --number) {
      const InnerPosition at = inside(number, input);
      leaf(block_, number, [&]<class L>(const L& layer) {
        if constexpr (!is_view<L>) {
          const Index in_width = at.shape.elements(), out_width = layer.output(at.shape).elements();
          const bool is_first = at.boundary == 0, is_last = at.boundary + out_width == memory.end.boundary;
          const Matrix<const T> in = is_first ? x : Matrix<const T>{memory.output(at.boundary - in_width, in_width)};
          const Matrix<const T> gradient_out = is_last ? gradient_y : Matrix<const T>{memory.gradient(at.boundary, out_width)};
          const Matrix<T> gradient_in = is_first ? Matrix<T>{} : memory.gradient(at.boundary - in_width, in_width);
          visit(layer, at, in, memory.output(at.boundary, out_width), gradient_out, gradient_in, memory.kept(at));
        }
      });
    }
  }

  B block_;
  InnerTotals totals_{};
};

}  // namespace pdp::nn::detail
