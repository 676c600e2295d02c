#pragma once

#include <type_traits>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/placement.hpp>

/// Layers of images with channels divided over the ranks of a tensor-parallel group. divided() sets a rank's part; until then the part is
/// the whole.
namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_convolution_of_several_groups_cannot_be_divided_by_channels(const Path& at, const char* layer, Index groups);

/// Returns a rank's part of a convolution: `L` of these numbers of channels. `divided`: the number that is divided, and its name `what`.
template <class L>
constexpr L convolution_part(const L& whole, Index in, Index out, Part of, const Path& at, Index divided, const char* what) {
  check_division(divided, of.count, at, L::name, what);
  if (const Index groups = whole.options().groups; groups > 1)
    a_convolution_of_several_groups_cannot_be_divided_by_channels(at, L::name, groups);
  L own{Conv2d{in, out, whole.kernel(), whole.options()}};
  own.part = of;
  return own;
}

}  // namespace detail

/// A Conv2d of one group with filters divided over the ranks. Each rank has some filters, takes all channels, and gives its own ones.
struct OutputParallelConv2d : Conv2d {
  static constexpr const char* name = "OutputParallelConv2d";
  using forgets_output = OutputParallelConv2d;
  static constexpr Placement takes = Placement::replicated, gives = Placement::channels;

  Part part{};

  constexpr explicit OutputParallelConv2d(const Conv2d& whole) : Conv2d{whole} {}

  [[nodiscard]] constexpr OutputParallelConv2d divided(Part of, const Path& at) const {
    return detail::convolution_part(*this, in(), out() / of.count, of, at, out(), "filters");
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    Conv2d::parameters(path, offset, [&](Parameter parameter) {
      parameter.fan_out *= part.count;
      parameter.row_part = part;
      visit(parameter);
    });
  }
};

/// A Conv2d of one group with channels divided over the ranks. Each rank takes some channels and gives one term of the sum of all filters.
/// All ranks have the bias, and the first adds it.
struct InputParallelConv2d : Conv2d {
  static constexpr const char* name = "InputParallelConv2d";
  using forgets_output = InputParallelConv2d;
  static constexpr Placement takes = Placement::channels, gives = Placement::partial;

  Part part{};

  constexpr explicit InputParallelConv2d(const Conv2d& whole) : Conv2d{whole} {}

  [[nodiscard]] constexpr InputParallelConv2d divided(Part of, const Path& at) const {
    return detail::convolution_part(*this, in() / of.count, out(), of, at, in(), "channels");
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    Conv2d::parameters(path, offset, [&](Parameter parameter) {
      parameter.fan_in *= part.count;
      if (parameter.cols > 0) parameter.col_part = part;
      visit(parameter);
    });
  }
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T*) const {
    Conv2d::forward(device, state, x, y, options().bias && part.index == 0);
  }
};

/// A BatchNorm or a GroupNorm of the channels that a rank has.
template <class L>
struct ChannelParallel : L {
  static_assert(std::is_same_v<L, BatchNorm> || std::is_same_v<L, GroupNorm>,
                "pdp: the argument of nn::ChannelParallel must be an nn::BatchNorm or an nn::GroupNorm; other layers between divided "
                "convolutions need no wrapper, or cannot be divided by channels");
  static constexpr const char* name = L::name;
  using forgets_output = ChannelParallel;
  static constexpr Placement takes = Placement::channels, gives = Placement::channels;

  Part part{};

  constexpr explicit ChannelParallel(const L& whole) : L{whole} {}

  [[nodiscard]] constexpr ChannelParallel divided(Part of, const Path& at) const {
    ChannelParallel own{some_channels(*this, of.count, at)};
    own.part = of;
    return own;
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    L::parameters(path, offset, [&](Parameter parameter) {
      parameter.fan_in *= part.count;
      parameter.fan_out *= part.count;
      parameter.row_part = part;
      visit(parameter);
    });
  }

 private:
  static constexpr BatchNorm some_channels(const BatchNorm& whole, int parts, const Path& at) {
    check_division(whole.channels, parts, at, name, "channels");
    BatchNorm own = whole;
    own.channels /= parts;
    return own;
  }
  static constexpr GroupNorm some_channels(const GroupNorm& whole, int parts, const Path& at) {
    check_division(whole.groups(), parts, at, name, "groups of channels");
    return GroupNorm{whole.groups() / parts, whole.channels() / parts, whole.eps()};
  }
};

static_assert(PlacedLayer<OutputParallelConv2d> && PlacedLayer<InputParallelConv2d>);
static_assert(PlacedLayer<ChannelParallel<BatchNorm>> && PlacedLayer<ChannelParallel<GroupNorm>>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/channel_parallel.hpp>
#endif
