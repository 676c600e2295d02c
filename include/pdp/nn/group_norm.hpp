#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/misfit.hpp>
#include <pdp/nn/normalisation.hpp>
#include <pdp/nn/normalisation_options.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_groups_of_a_group_norm_must_divide_its_channels(Index groups, Index channels);

}  // namespace detail

/// Normalises groups of channels: [rows, channels, ...] -> the same shape. Each group has channels / groups channels, one after another,
/// with all their positions. y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of the group and the sample, and
/// weight and bias of the channel. weight begins as 1, bias as 0. Wu, He, "Group normalization", ECCV 2018, arXiv:1803.08494.
///
/// Throws ConfigError unless there is a group, the groups divide the channels, and eps is 0 or more; in a constant, this is a compile
/// error.
class GroupNorm {
 public:
  static constexpr const char* name = "GroupNorm";
  using forgets_output = GroupNorm;

  constexpr GroupNorm(Index groups, Index channels, double eps = 1e-5) : how_{channels, groups, eps} {
    if (groups < 1 || channels < 1 || channels % groups != 0) detail::the_groups_of_a_group_norm_must_divide_its_channels(groups, channels);
    detail::check_eps(name, eps);
  }
  [[nodiscard]] constexpr Index groups() const { return how_.groups; }
  [[nodiscard]] constexpr Index channels() const { return how_.channels; }
  [[nodiscard]] constexpr double eps() const { return how_.eps; }

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (!input.rank_is_known() || input[0] == Shape::any || input[0] == channels()) return {};
    return {"channels (the first dimension)", channels(), input[0]};
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }
  [[nodiscard]] constexpr Index parameter_elements() const { return layer().parameter_elements(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    layer().parameters(path, offset, visit);
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    layer().forward(device, state, x, y);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T*) const {
    layer().backward_input(device, state, x, gradient_y, gradient_x);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y, T*) const {
    layer().backward_weight(device, state, x, gradient_y);
  }

 private:
  [[nodiscard]] constexpr detail::NormalisationLayer layer() const { return {.how = how_}; }

  GroupNormalisation how_;
};
static_assert(Layer<GroupNorm> && !works_in_place<GroupNorm>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/group_norm.hpp>
#endif
