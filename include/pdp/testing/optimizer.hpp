#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/requirements.hpp>
#include <pdp/testing/check_result.hpp>
#include <pdp/testing/differences.hpp>
#include <pdp/testing/values.hpp>

namespace pdp::testing {

/// The options of check_optimizer().
struct OptimizerCheckOptions {
  Index elements = 101;     // parameters
  std::int64_t steps = 5;   // updates of each
  std::uint64_t seed = 1;   // of parameters and gradients
  double tolerance = 1e-5;  // between vectors and numbers, relative; a processor may round their products differently
};

namespace detail {

/// Returns the gradients of a step: normal numbers of several magnitudes, some of them 0.
std::vector<float> gradients_of(const OptimizerCheckOptions& options, std::int64_t step);
/// Returns the properties of a step, with a factor of the learning rate that changes.
StepInfo step_of(std::int64_t number);
/// Returns "PATH gives FOUND as parameter ELEMENT after N steps; expected EXPECTED".
std::string update_fault(const std::string& path, Index element, double found, double expected, std::int64_t steps);

/// Checks a rule. See check_optimizer().
template <optim::Optimizer Rule>
class OptimizerCheck {
 public:
  OptimizerCheck(const Rule& rule, const OptimizerCheckOptions& options) : rule_{rule}, options_{options} {}

  /// Returns a sentence about the first fault, or an empty string.
  std::string fault() const {
    std::vector<float> expected = first();
    if (std::string found = scalar_fault(expected); !found.empty()) return found;
    for (const cpu::Simd simd : {cpu::Simd::baseline, cpu::Simd::avx2, cpu::Simd::avx512}) {
      if (simd > cpu::widest_simd()) continue;
      const auto bytes = simd == cpu::Simd::avx512 ? 64 : simd == cpu::Simd::avx2 ? 32 : 16;
      const std::vector<float> whole = updated(simd, {0, options_.elements});
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (!(std::abs(whole[i] - expected[i]) <= static_cast<float>(options_.tolerance) * std::max(1.0f, std::abs(expected[i])))) {
          return update_fault(text("update with vectors of ", bytes, " bytes"), as_index(i), as_double(whole[i]), as_double(expected[i]),
                              options_.steps) +
                 (keeps() ? ", as update with a float V"
                          : ", as update with a float V and its state, which keeps_state() says is not needed");
        }
      }
      const Index half = options_.elements / 2;
      const std::vector<float> parts = updated(simd, {0, std::min<Index>(1, half), half, options_.elements});
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (parts[i] != whole[i]) {
          return update_fault(text("update of parts, with vectors of ", bytes, " bytes,"), as_index(i), as_double(parts[i]),
                              as_double(whole[i]), options_.steps) +
                 ", as in an update of all parameters at once";
        }
      }
    }
    return {};
  }

 private:
  static constexpr std::size_t fields = optim::state_fields<Rule>;

  [[nodiscard]] bool keeps() const { return fields == 0 || optim::needed_state_fields(rule_) > 0; }
  [[nodiscard]] std::vector<float> first() const { return normal(as_size(options_.elements), options_.seed); }

  /// Updates each parameter as a single number.
  std::string scalar_fault(std::vector<float>& parameters) const {
    const cpu::FlushDenormals guard;
    std::vector<typename Rule::template State<float>> states(parameters.size());
    for (std::int64_t step = 1; step <= options_.steps; ++step) {
      const std::vector<float> gradient = gradients_of(options_, step);
      const auto info = constants(rule_, step_of(step));
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const float before = parameters[i];
        rule_.update(parameters[i], gradient[i], states[i], info);
        if (!is_finite(parameters[i]))
          return text("update gives ", six_digits(as_double(parameters[i])), " in step ", step, " for the parameter ",
                      six_digits(as_double(before)), " and the gradient ", six_digits(as_double(gradient[i])), "; expected a finite value");
      }
    }
    return {};
  }

  /// Returns the parameters after all steps. Parts of them, which begin at `cuts`, are updated one after another.
  std::vector<float> updated(cpu::Simd simd, const std::vector<Index>& cuts) const {
    std::vector<float> parameters = first();
    const cpu::Cpu cpu{.registers = simd};
    for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
      const auto begin = as_size(cuts[part]), count = as_size(cuts[part + 1] - cuts[part]);
      std::vector<float> state(optim::needed_state_fields(rule_) * count);
      for (std::int64_t step = 1; step <= options_.steps; ++step) {
        const std::vector<float> gradient = gradients_of(options_, step);
        const float* const from = gradient.data() + begin;
        const StepNumbers numbers{.info = step_of(step)};
        cpu::update<fields>(cpu, rule_, &numbers, std::span{parameters}.subspan(begin, count), std::span{&from, 1}, std::span{state});
      }
    }
    return parameters;
  }

  const Rule& rule_;
  const OptimizerCheckOptions& options_;
};

}  // namespace detail

/// Checks an optimizer's rule on a CPU, for random parameters and gradients:
///   - It gives finite values, also if a gradient is 0.
///   - It gives the same values with vector registers of each size as with a single float.
///   - It gives the same bits for parts of the parameters as for all of them, as the ranks of strategy::Zero need.
///   - It does not need its state if keeps_state() returns false.
template <class Rule>
CheckResult check_optimizer(const Rule& rule, const OptimizerCheckOptions& options = {}) {
  static_cast<void>(optim::detail::OptimizerRequirements<Rule>{});
  return CheckResult{detail::OptimizerCheck<Rule>{rule, options}.fault()};
}

}  // namespace pdp::testing

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/optimizer.hpp>
#endif
