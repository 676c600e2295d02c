#pragma once

#include <utility>

#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// The same block several times, each copy with its own parameters. The count is a value, so a model's depth can come from a command line,
/// and the block is compiled once. The block's output must have the width of its input. Throws ConfigError if the count is less than 1.
template <class B>
class Repeat {
  static_assert(detail::is_or_resembles_block<B>, "pdp: the second argument of nn::Repeat must be a layer or a container of layers");
  static_assert(detail::meet<Placement::unknown, B, B>());

 public:
  using Leaves = LeafTypes<B>;

  constexpr Repeat(Index count, B block) : count_{count}, block_{std::move(block)} {
    if (count < 1) throw ConfigError{text("Repeat was given a count of ", count, "; it takes at least 1")};
    check_widths(flow(*this, Shape{}));
  }

  [[nodiscard]] constexpr Index leaves() const { return count_ * nn::leaves(block_); }
  template <class Visit>
  constexpr void leaf(Index number, Visit&& visit) const {
    if (number >= 0 && number < leaves()) nn::leaf(block_, number % nn::leaves(block_), visit);
  }
  template <class Visit>
  constexpr void for_each_leaf(const Path& path, Visit&& visit) const {
    for (Index copy = 0; copy < count_; ++copy) nn::for_each_leaf(block_, path.child(copy), visit);
  }

 private:
  Index count_;
  B block_;
};

template <class B>
struct PlacementAfter<Repeat<B>> {
  static constexpr Placement of(Placement given) { return placement_after<B>(given); }
};

}  // namespace pdp::nn
