#pragma once

#include <tuple>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// Layers one after another. The constructor checks their widths: at compile time if the model is constexpr; otherwise it throws
/// ShapeError.
template <class... B>
class Sequential {
  static_assert(sizeof...(B) > 0, "pdp: nn::Sequential takes one layer or more");
  static_assert(
      (detail::is_or_resembles_block<B> && ...),
      "pdp: every argument of nn::Sequential must be a layer or a container of layers (see the concepts nn::Layer and nn::Container)");
  static_assert(detail::meet<Placement::unknown, B...>());

 public:
  using Leaves = LeafTypes<B...>;

  constexpr explicit Sequential(B... blocks) : blocks_{blocks...} { check_widths(flow(*this, Shape{})); }

  [[nodiscard]] constexpr Index leaves() const {
    Index count = 0;
    each([&count](const auto& block, Index) { count += nn::leaves(block); });
    return count;
  }
  template <class Visit>
  constexpr void leaf(Index number, Visit&& visit) const {
    each([&](const auto& block, Index) {
      const Index count = nn::leaves(block);
      if (number >= 0 && number < count) nn::leaf(block, number, visit);
      number -= count;
    });
  }
  template <class Visit>
  constexpr void for_each_leaf(const Path& path, Visit&& visit) const {
    // Not by each(), which would instantiate one more function for each visit and type of block.
    [&]<std::size_t... Positions>(std::index_sequence<Positions...>) {
      (nn::for_each_leaf(std::get<Positions>(blocks_), path.child(as_index(Positions)), visit), ...);
    }
    (std::index_sequence_for<B...>{});
  }

 private:
  template <class F>
  constexpr void each(F&& f) const {
    [&]<std::size_t... Positions>(std::index_sequence<Positions...>) { (f(std::get<Positions>(blocks_), as_index(Positions)), ...); }
    (std::index_sequence_for<B...>{});
  }

  std::tuple<B...> blocks_;
};

template <class... B>
struct PlacementAfter<Sequential<B...>> {
  static constexpr Placement of(Placement given) { return ((given = placement_after<B>(given)), ...); }
};

/// A Sequential of a Sequential is one inside another, as in PyTorch, not a copy.
template <class... B>
explicit Sequential(Sequential<B...>) -> Sequential<Sequential<B...>>;

}  // namespace pdp::nn
