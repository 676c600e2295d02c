#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/wrong_argument.hpp>
#include <pdp/data/dataset.hpp>

/// The requirements of the concept data::Dataset, one static_assert each, so that the compiler names the one that is not met.
namespace pdp::data::detail {

template <class D>
struct Gather {
  template <class... A, class Self = const D&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>().gather(std::forward<A>(arguments)...));
};

template <class D>
constexpr bool has_target = false;
template <class D>
requires requires { typename D::Target; }
constexpr bool has_target<D> = TargetElement<typename D::Target>;

template <class D>
struct DatasetRequirements {
  static_assert(Copyable<D>, "pdp: this dataset cannot be copied; the loader keeps a copy of its own, and copies must be cheap");
  static_assert(has_target<D>, "pdp: this dataset needs the type of its targets, `using Target = std::int32_t` or `using Target = float`");
  static_assert(
      requires(const D& data) {
        { data.size() } -> std::same_as<Index>;
      },
      "pdp: this dataset needs the function `Index size() const`: the number of samples");
  static_assert(
      requires(const D& data) {
        { data.sample_shape() } -> std::same_as<Shape>;
      },
      "pdp: this dataset needs the function `Shape sample_shape() const`");
  static_assert(
      requires(const D& data) {
        { data.target_shape() } -> std::same_as<Shape>;
      },
      "pdp: this dataset needs the function `Shape target_shape() const`; it is Shape{1} for class numbers");

  static constexpr int wrong_argument() {
    if constexpr (has_target<D>) {
      using Target = typename D::Target;
      return pdp::detail::wrong_argument<Gather<D>>(
          pdp::detail::Types<std::span<const Index>&, std::span<SampleOf<D>>&, std::span<Target>&>{},
          pdp::detail::Types<Index, std::span<Index>, SampleOf<D>*, Target*>{});
    }
    return 0;
  }
  static constexpr int gather = wrong_argument();
  static_assert(gather != 1, "pdp: gather of this dataset: argument 1, the samples' numbers, must be `std::span<const Index> which`");
  static_assert(gather != 2 || !std::same_as<SampleOf<D>, float>,
                "pdp: gather of this dataset: argument 2, where the samples go, must be `std::span<float> x`; a dataset of tokens also "
                "declares `using Sample = std::int32_t`");
  static_assert(gather != 2 || std::same_as<SampleOf<D>, float>,
                "pdp: gather of this dataset: argument 2, where the tokens go, must be `std::span<std::int32_t> x`");
  static_assert(gather != 3, "pdp: gather of this dataset: argument 3, where the targets go, must be `std::span<Target> y`");
  static constexpr bool needs_epoch() {
    if constexpr (has_target<D>) return gather < 0 && GathersWith<D, const TrainingEpoch&>;
    return false;
  }
  static_assert(!needs_epoch(),
                "pdp: gather of this dataset takes an epoch in every call, but evaluations give none; add `void gather(std::span<const "
                "Index> which, std::span<Sample> x, std::span<Target> y) const` (Sample: float unless the dataset declares it), which does "
                "not change samples at random");
  static_assert(gather >= 0 || needs_epoch(),
                "pdp: this dataset needs the function `void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) "
                "const` (Sample: float unless the dataset declares it); it is missing, not const, or takes other arguments");
  static constexpr bool returns_nothing() {
    if constexpr (has_target<D>) {
      return gather != 0 ||
             requires(const D& data, std::span<const Index> which, std::span<SampleOf<D>> x, std::span<typename D::Target> y) {
        { data.gather(which, x, y) } -> std::same_as<void>;
      };
    }
    return true;
  }
  static_assert(returns_nothing(), "pdp: gather of this dataset must return nothing");

  static constexpr bool hold = Dataset<D>;
};

}  // namespace pdp::data::detail
