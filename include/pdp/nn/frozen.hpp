#pragma once

#include <utility>

#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// A layer or container whose parameters are not trained, such as the first layers of a model that was trained before. They keep their
/// values to the bit. Names of parameters, files and initial values are those of the same block without Frozen.
///
/// Its layers compute in a step as in an evaluation: Dropout passes values on, and BatchNorm takes its running mean and variance, which
/// stay as they are. A step computes no gradients of frozen parameters, and none of the inputs of frozen layers before which nothing is
/// trained. No rank keeps or sends gradients of a unit in which all parameters are frozen. Inside Residual, Sum or Concat, only the
/// computation of the gradients is saved.
///
/// To train some of these parameters and not others, or to decide at run time, use optim::ParameterGroup::is_frozen.
template <class B>
class Frozen {
  static_assert(detail::is_or_resembles_block<B>, "pdp: the argument of nn::Frozen must be a layer or a container of layers");

 public:
  using Leaves = LeafTypes<B>;

  constexpr explicit Frozen(B block) : block_{std::move(block)} {}

  [[nodiscard]] constexpr Index leaves() const { return nn::leaves(block_); }
  template <class Visit>
  constexpr void leaf(Index number, Visit&& visit) const {
    if (number >= 0 && number < leaves()) nn::leaf(block_, number, visit);
  }
  template <class Visit>
  constexpr void for_each_leaf(const Path& path, Visit&& visit) const {
    nn::for_each_leaf(block_, path.frozen(), visit);
  }

 private:
  B block_;
};

namespace detail {
template <class B>
constexpr bool names_children<Frozen<B>> = names_children<B>;
}

template <class B>
struct PlacementAfter<Frozen<B>> {
  static constexpr Placement of(Placement given) { return placement_after<B>(given); }
};

static_assert(Container<Frozen<Linear>>);

}  // namespace pdp::nn
