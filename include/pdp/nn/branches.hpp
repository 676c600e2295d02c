#pragma once

#include <tuple>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/nn/inner_block.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/pauses.hpp>
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
      (begins_and_ends_in_full<B>() && ...),
      "pdp: each block of an nn::Sum or nn::Concat must take its input in full on each rank of a tensor-parallel group and give its "
      "output so: begin with nn::Replicate before ColumnParallel and the like, and end with nn::AllReduce behind RowParallel and the like");
  static_assert(!any_reshapes<LeafTypes<B...>>,
                "pdp: nn::Flatten and nn::Reshape cannot be inside nn::Sum or nn::Concat; put them before or behind");

 public:
  using Inner = LeafTypes<B...>;
  static constexpr bool uses_row_numbers = any_uses_row_numbers<Inner>;
  static constexpr bool sums_over_batch = any_sums_over_batch<Inner>;

  constexpr explicit Branches(B... blocks) : blocks_{InnerBlock<B>{std::move(blocks)}...} {
    each([](const auto& block, Index) { check_widths(block.flow(Shape{})); });
  }

  /// Calls visit(block) for each of the blocks.
  template <class Visit>
  constexpr void for_each_block(Visit&& visit) const {
    each([&](const auto& block, Index) { visit(block.block()); });
  }

  /// Returns make(map(block)...).
  template <class Make, class Map>
  [[nodiscard]] constexpr auto with_blocks(Make&& make, Map&& map) const {
    return std::apply([&](const auto&... block) { return std::apply(make, std::tuple{map(block.block())...}); }, blocks_);
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
  [[nodiscard]] constexpr Index pauses() const requires any_pauses_inside<Inner> { return all_pauses(); }
  [[nodiscard]] constexpr Index batch_sums() const {
    Index total = 0;
    each([&](const auto& block, Index) { total += block.batch_sums(); });
    return total;
  }
  /// The blocks pause one after another, in forward and in backward.
  [[nodiscard]] constexpr PauseSum sums_of_pause(const Shape& input, Index pause, bool backward) const {
    PauseSum found{};
    Index first = 0;
    each([&](const auto& block, Index) {
      if (0 <= pause && pause < block.pauses()) {
        found = block.sums_of_pause(input, pause, backward);
        found.first += first;
      }
      pause -= block.pauses();
      first += block.batch_sums();
    });
    return found;
  }
  [[nodiscard]] constexpr bool exchanges() const requires any_exchanges_inside<Inner> { return inner_part().count > 1; }
  [[nodiscard]] constexpr Part inner_part() const {
    Part found{};
    each([&](const auto& block, Index) {
      if (const Part own = block.inner_part(); own.count > 1) found = own;
    });
    return found;
  }
  template <class T>
  [[nodiscard]] Matrix<T> exchanged(const Shape& input, Index rows, Matrix<T> gradient_x, T* saved, Index pause, bool backward) const {
    const Matrix<T> term = term_of(input, rows, saved);
    Matrix<T> found;
    each([&](const auto& block, Index number) {
      if (0 <= pause && pause < block.pauses())
        found = block.exchanged(input, rows, number == 0 ? gradient_x : term, saved, pause, backward);
      pause -= block.pauses();
      saved += block.saved_elements(input) * rows;
    });
    return found;
  }
  [[nodiscard]] constexpr Index batch_values(const Shape& input) const {
    Index fewest = 0;
    each([&](const auto& block, Index) {
      const Index own = block.batch_values(input);
      if (own > 0 && (fewest == 0 || own < fewest)) fewest = own;
    });
    return fewest;
  }
  [[nodiscard]] constexpr bool pauses_in_micro_batches() const {
    bool all = true;
    each([&](const auto& block, Index) { all = all && block.pauses_in_micro_batches(); });
    return all;
  }
  template <class D, class T>
  void forward_part(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T>, T* saved, Index part) const {
    with_memory(state, shape_of(state, x), x.rows, saved, [&](const auto& block, Index, const State<T>& own, T* memory) {
      if (0 <= part && part <= block.pauses()) block.forward_part(device, own, x, memory, part);
      part -= block.pauses();
    });
  }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    each([&](const auto& block, Index number) {
      block.parameters(path.child(number), offset, visit);
      offset += block.parameter_elements();
    });
  }

 protected:
  [[nodiscard]] constexpr Index all_pauses() const {
    Index total = 0;
    each([&](const auto& block, Index) { total += block.pauses(); });
    return total;
  }
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
      if (own.batch_sums != nullptr) own.batch_sums += block.batch_sums();
      saved += block.saved_elements(input) * rows;
    });
  }
  /// Runs what is left of a block's forward behind the last pause of all blocks, or in an evaluation all of it. Returns the block's output.
  template <class Inner, class D, class T>
  Matrix<const T> rest_of_forward(const InnerBlock<Inner>& block, Index number, const D& device, const State<T>& own, Matrix<const T> x,
                                  T* memory) const {
    if (never_pauses(own)) return block.forward(device, own, x, memory);
    Index before = 0;
    each([&](const auto& other, Index of) { before += of < number ? other.pauses() : 0; });
    return block.forward_part(device, own, x, memory, all_pauses() - before);
  }
  /// Returns whether the blocks do not pause: in an evaluation, and in a step if the layer is frozen.
  template <class T>
  [[nodiscard]] constexpr bool never_pauses(const State<T>& state) const {
    return !state.pass.is_training && inner_part().count == 1;
  }
  /// Runs a part of the computation of the gradient of x, the sum of those of the blocks, or all of it if they do not pause.
  /// gradient(block, number, saved memory) returns the gradient of a block's output.
  template <class D, class T, class Gradient>
  void backward_branches(const D& device, const State<T>& state, const Shape& input, Matrix<const T> x, Matrix<T> gradient_x, T* saved,
                         Index part, Gradient&& gradient) const {
    const Matrix<T> term = term_of(input, x.rows, saved);
    with_memory(state, input, x.rows, saved, [&](const auto& block, Index number, const State<T>& own, T* memory) {
      const Index pauses = block.pauses();
      const Matrix<const T> of_output = gradient(block, number, memory);
      const Matrix<T> to = number == 0 ? gradient_x : term;
      if (never_pauses(state))
        block.backward_input(device, own, x, of_output, to, memory);
      else if (0 <= part && part <= pauses)
        block.backward_part(device, own, x, of_output, to, memory, part);
      if (number > 0 && (never_pauses(state) || part == pauses))
        add(device, Matrix<const T>{gradient_x}, Matrix<const T>{term}, gradient_x);
      part -= pauses;
    });
  }

 private:
  /// Returns the memory for the gradient of x of one block.
  template <class T>
  [[nodiscard]] Matrix<T> term_of(const Shape& input, Index rows, T* saved) const {
    return {saved + of_blocks(input) * rows, rows, input.elements()};
  }
  [[nodiscard]] constexpr Index of_blocks(const Shape& input) const {
    Index elements = 0;
    each([&](const auto& block, Index) { elements += block.saved_elements(input); });
    return elements;
  }

  std::tuple<InnerBlock<B>...> blocks_;
};

}  // namespace pdp::nn::detail
