#pragma once

#include <concepts>
#include <span>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/wrong_argument.hpp>
#include <pdp/loss/loss.hpp>

/// The requirements of the concept loss::Loss, one static_assert for each.
namespace pdp::loss::detail {

template <class L>
struct Evaluate {
  template <class... A, class Self = const L&>
  auto operator()(A&&... arguments) -> decltype(std::declval<Self>()(std::forward<A>(arguments)...));
};

template <class L, class D, class T>
struct LossRequirements {
  static constexpr bool has_target = requires { typename L::Target; };
  static_assert(Copyable<L>, "pdp: this loss cannot be copied");
  static_assert(has_target, "pdp: this loss needs the type of its targets, `using Target = std::int32_t` or `using Target = float`");
  static_assert(
      requires(const L& loss) {
        { loss.target_elements(Index{}) } -> std::same_as<Index>;
      },
      "pdp: this loss needs the function `Index target_elements(Index outputs) const`: the elements of a sample's target");
  static_assert(
      requires {
        { L::has_classes } -> std::convertible_to<bool>;
      },
      "pdp: this loss needs `static constexpr bool has_classes`: whether there is an accuracy");

  static constexpr int wrong_argument() {
    if constexpr (has_target) {
      using Targets = std::span<const loss::TargetOf<L, D, T>>;
      return pdp::detail::wrong_argument<Evaluate<loss::OnDevice<L, D>>>(
          pdp::detail::Types<const D&, Matrix<const T>&, Targets&, const double*&, Matrix<T>&, LossSums*&>{},
          pdp::detail::Types<D&, Matrix<T>&, Matrix<const T>&, std::span<T>, std::span<const T>, double, double*, T*, LossSums&>{});
    }
    return 0;
  }
  static constexpr int call = wrong_argument();
  static_assert(call != 1, "pdp: operator() of this loss: argument 1, the device, must be `const D& device`");
  static_assert(call != 2, "pdp: operator() of this loss: argument 2, the model's output, must be `Matrix<const T> output`");
  static_assert(call != 3, "pdp: operator() of this loss: argument 3, the targets, must be `std::span<const Target> targets`");
  static_assert(call != 4, "pdp: operator() of this loss: argument 4, the factor of the gradient, must be `const double* scale`");
  static_assert(call != 5, "pdp: operator() of this loss: argument 5, the gradient, must be `Matrix<T> gradient`");
  static_assert(call != 6, "pdp: operator() of this loss: argument 6, the sums, must be `LossSums* sums`");
  static_assert(call >= 0,
                "pdp: this loss needs the function `void operator()(const D& device, Matrix<const T> output, std::span<const Target> "
                "targets, const double* scale, Matrix<T> gradient, LossSums* sums) const`; it is missing, not const, or takes other "
                "arguments");
};

}  // namespace pdp::loss::detail
