#pragma once

#include <tuple>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/nn/inner_block.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn::detail {

/// The base of a layer of several blocks that take the same input. The layer saves their memory, one block after another, and then the
/// gradient of x of one of them.
template <class... B>
class Branches {
  static_assert(sizeof...(B) >= 2, "pdp: nn::Sum and nn::Concat take two layers or more");
  static_assert((is_or_resembles_block<B> && ...),
                "pdp: every argument of nn::Sum and nn::Concat must be a layer or a container of layers");
  static_assert(
      !any_is_placed<LeafTypes<B...>>,
      "pdp: tensor-parallel layers cannot be inside nn::Sum or nn::Concat: schedules treat these as one layer, which exchanges no "
      "messages");
  static_assert(!any_is_view<LeafTypes<B...>>,
                "pdp: nn::Flatten and nn::Reshape cannot be inside nn::Sum or nn::Concat; put them before or behind");

 public:
  using Inner = LeafTypes<B...>;
  static constexpr bool uses_row_numbers = any_uses_row_numbers<Inner>;

  constexpr explicit Branches(B... blocks) : blocks_{InnerBlock<B>{std::move(blocks)}...} {
    each([](const auto& block, Index) { check_widths(block.flow(Shape{})); });
  }

  [[nodiscard]] constexpr Index input_elements() const {
    Index elements = 0;
    each([&](const auto& block, Index) { elements = elements == 0 ? block.input_elements() : elements; });
    return elements;
  }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    Misfit found;
    each([&](const auto& block, Index) { found = found ? found : block.flow(input).misfit; });
    return found;
  }
  [[nodiscard]] constexpr Index parameter_elements() const {
    Index elements = 0;
    each([&](const auto& block, Index) { elements += block.parameter_elements(); });
    return elements;
  }
  [[nodiscard]] constexpr Index saved_elements(const Shape& input) const { return of_blocks(input) + input.elements(); }
  [[nodiscard]] constexpr Index products(const Shape& input) const {
    Index total = 0;
    each([&](const auto& block, Index) { total += block.products(input); });
    return total;
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    each([&](const auto& block, Index number) {
      block.parameters(path.child(number), offset, visit);
      offset += block.parameter_elements();
    });
  }

 protected:
  /// Calls visit(block, its number) for each.
  template <class Visit>
  constexpr void each(Visit&& visit) const {
    [&]<std::size_t... Numbers>(std::index_sequence<Numbers...>) { (visit(std::get<Numbers>(blocks_), as_index(Numbers)), ...); }
    (std::index_sequence_for<B...>{});
  }
  /// Calls visit(block, its number, its State, its saved memory) for each. The State is that of the layer, for a sample of shape `input`.
  template <class T, class Visit>
  void with_memory(const State<T>& state, const Shape& input, Index rows, T* saved, Visit&& visit) const {
    State<T> own = state;
    own.input = input;
    each([&](const auto& block, Index number) {
      own.pass.key = random::make_key(state.pass.key.value, number);
      visit(block, number, std::as_const(own), saved);
      own.value += block.parameter_elements();
      if (own.gradient != nullptr) own.gradient += block.parameter_elements();
      saved += block.saved_elements(input) * rows;
    });
  }
  /// Computes the gradient of x, the sum of those of the blocks. gradient(block, number, saved memory) returns that of a block's output.
  template <class D, class T, class Gradient>
  void backward_branches(const D& device, const State<T>& state, const Shape& input, Matrix<const T> x, Matrix<T> gradient_x, T* saved,
                         Gradient&& gradient) const {
    const Matrix<T> term{saved + of_blocks(input) * x.rows, x.rows, x.cols};
    with_memory(state, input, x.rows, saved, [&](const auto& block, Index number, const State<T>& own, T* memory) {
      block.backward_input(device, own, x, gradient(block, number, memory), number == 0 ? gradient_x : term, memory);
      if (number > 0) add(device, Matrix<const T>{gradient_x}, Matrix<const T>{term}, gradient_x);
    });
  }

 private:
  [[nodiscard]] constexpr Index of_blocks(const Shape& input) const {
    Index elements = 0;
    each([&](const auto& block, Index) { elements += block.saved_elements(input); });
    return elements;
  }

  std::tuple<InnerBlock<B>...> blocks_;
};

}  // namespace pdp::nn::detail
