#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/loss/loss_requirements.hpp>
#include <pdp/testing/check_result.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/guarded_memory.hpp>

namespace pdp::testing {

namespace detail {

/// Checks a loss of outputs [rows, cols] in arithmetic of type T. See check_loss_gradients().
template <class T, class L>
class LossCheck {
 public:
  using Target = loss::TargetOf<L, cpu::Cpu, T>;

  LossCheck(const L& loss, Index cols, std::span<const typename L::Target> targets, const GradientOptions& options)
      : loss_{loss},
        options_{options},
        cols_{cols},
        targets_(targets.begin(), targets.end()),
        target_width_{loss.target_elements(cols)},
        scale_{0.75 / as_double(options.rows)},
        output_{random_values<T>(options.rows * cols, options, "outputs", options.mean, options.deviation)},
        gradient_{options.rows * cols} {}

  /// Returns a sentence about the first fault, or an empty string.
  std::string fault() {
    const LossSums sums = of_rows(0, rows(), true);
    if (!gradient_.is_intact()) return "the loss writes outside of the gradient";
    if (!is_finite(sums.loss)) return text("the loss gives ", six_digits(sums.loss), " as the sum of its rows; expected a finite value");
    const std::vector<T> found(gradient_.data(), gradient_.data() + rows() * cols_);
    const auto y = [this] { return std::vector<double>{of_rows(0, rows(), false).loss}; };
    if (const auto wrong = first_mismatch(std::span<T>{output_}, std::span<const T>{found}, std::span{&scale_, 1}, options_, y))
      return gradient_fault("the loss", element_name("the outputs", cols_, wrong->element), *wrong,
                            text("*scale (", scale_, ") times the sum"));
    if (std::string fault = sums_fault(sums); !fault.empty()) return fault;
    return ignored_row_fault();
  }

 private:
  [[nodiscard]] Index rows() const { return options_.rows; }
  /// Computes the loss of some rows, and adds it to `before`.
  LossSums of_rows(Index first, Index count, bool writes, const LossSums& before = {}) {
    LossSums sums = before;
    const Matrix<T> gradient = writes ? gradient_.matrix(count, cols_) : Matrix<T>{};
    const Pass pass{.is_training = true, .numbers = &numbers_, .key = random::make_key(options_.seed, "pass"), .first_row = first};
    loss::compute(loss_, cpu_, Matrix<const T>{output_.data() + first * cols_, count, cols_},
                  std::span<const Target>{targets_}.subspan(as_size(first * target_width_), as_size(count * target_width_)), &scale_,
                  gradient, &sums, pass);
    return sums;
  }
  std::string sums_fault(const LossSums& sums) {
    const auto differ = [this](const LossSums& a, const LossSums& b) {
      return !(std::abs(a.loss - b.loss) <= options_.tolerance * (1 + std::abs(b.loss))) || a.correct != b.correct;
    };
    const auto told = [](const LossSums& each) {
      return text("a loss of ", six_digits(each.loss), " and ", each.correct, " correct rows");
    };
    if (const LossSums found = of_rows(0, rows(), false); differ(found, sums))
      return text("without a gradient the loss gives ", told(found), "; expected ", told(sums), ", as with one");
    const LossSums before{.loss = 2, .correct = 3}, both{before.loss + sums.loss, before.correct + sums.correct};
    if (const LossSums found = of_rows(0, rows(), true, before); differ(found, both))
      return text("the loss gives ", told(found), " for sums that were not zero before; expected ", told(both), ", as it adds to them");
    LossSums apart;
    for (Index row = 0; row < rows(); ++row) apart = of_rows(row, 1, false, apart);
    if (differ(sums, apart)) return text("the loss gives ", told(sums), "; expected ", told(apart), ", the sum over its rows one by one");
    if (const LossSums none = of_rows(0, 0, true); none.loss != 0 || none.correct != 0)
      return text("the loss gives ", told(none), " for 0 rows; expected 0");
    if (const double most = L::has_classes ? as_double(rows()) : 0; !(sums.correct >= 0 && sums.correct <= most))
      return text("the loss gives ", told(sums), "; expected at most ", most, L::has_classes ? " correct rows" : ", as it has no classes");
    return {};
  }

  /// Checks the rows that do not count.
  std::string ignored_row_fault() {
    if constexpr (loss::IgnoresRows<L>) {
      for (Index row = 0; row < rows() && loss::may_ignore_rows(loss_); ++row) {
        if (loss_.counts(std::span<const Target>{targets_}.subspan(as_size(row * target_width_), as_size(target_width_)))) continue;
        const LossSums sums = of_rows(row, 1, true);
        const auto first = std::find_if(gradient_.data(), gradient_.data() + cols_, [](T each) { return each != T{}; });
        if (sums.loss != 0 || sums.correct != 0 || first != gradient_.data() + cols_)
          return text("the loss gives ", sums.loss, ", ", sums.correct, " correct rows and a gradient ",
                      first == gradient_.data() + cols_ ? "of zeros" : "that is not zero", " for row ", row,
                      ", which does not count; expected 0, 0 and a gradient of zeros");
      }
    }
    return {};
  }

  const L& loss_;
  const cpu::Cpu cpu_{};
  GradientOptions options_;
  Index cols_;
  std::vector<Target> targets_;
  Index target_width_;
  double scale_;
  std::vector<T> output_;
  GuardedMemory<T> gradient_;
  StepNumbers numbers_{};
};

/// Returns random targets: classes for integers, otherwise normal numbers.
template <class L>
std::vector<typename L::Target> random_targets(const L& loss, Index outputs, const GradientOptions& options) {
  const std::vector<double> numbers = random_values<double>(options.rows * loss.target_elements(outputs), options, "targets", 0, 1);
  std::vector<typename L::Target> targets;
  for (const double number : numbers) {
    if constexpr (std::integral<typename L::Target>)
      targets.push_back(static_cast<typename L::Target>(std::fmod(std::abs(number) * 1000, as_double(outputs))));
    else
      targets.push_back(static_cast<typename L::Target>(number));
  }
  return targets;
}

}  // namespace detail

/// Checks a loss on a CPU: whether the gradient of its outputs equals central differences of *scale times the sum over rows. Also checks
/// that it adds to its sums, and gives the same sums with and without a gradient, for all rows at once and one by one; and that rows that
/// it ignores add nothing and have a gradient of zeros.
///
/// Computes in T; by default in double, or in float if the loss has no function for double. `outputs`: values of a row. `targets`: those of
/// all rows, whose number then replaces options.rows. Throws ShapeError if they are no whole number of rows.
template <class T = void, class L>
CheckResult check_loss_gradients(const L& loss, Index outputs, std::span<const typename L::Target> targets, GradientOptions options = {}) {
  using Checked = std::conditional_t<!std::is_void_v<T>, T, std::conditional_t<loss::Loss<L, cpu::Cpu, double>, double, float>>;
  static_cast<void>(loss::detail::LossRequirements<L, cpu::Cpu, Checked>{});
  const Index width = loss.target_elements(outputs), elements = as_index(targets.size());
  if (width < 1 || elements % width != 0)
    throw ShapeError{text("a check of a loss has ", elements, " targets; expected a multiple of ", width, ", the target of a row")};
  options.rows = elements / width;
  return CheckResult{detail::LossCheck<Checked, L>{loss, outputs, targets, detail::for_type<Checked>(options)}.fault()};
}
/// As above, with random targets: classes if Target is an integer, otherwise normal numbers.
template <class T = void, class L>
CheckResult check_loss_gradients(const L& loss, Index outputs, const GradientOptions& options = {}) {
  const std::vector<typename L::Target> targets = detail::random_targets(loss, outputs, options);
  return check_loss_gradients<T>(loss, outputs, std::span<const typename L::Target>{targets}, options);
}

}  // namespace pdp::testing
