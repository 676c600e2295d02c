#include <pdp/cpu/update.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace optim = pdp::optim;
using pdp::Index;
using pdp::cpu::Cpu;

namespace {

/// A rule with every operation that a rule may use, with vectors and numbers on either side.
struct EveryOperation {
  template <class V>
  struct State {
    V first, second, third;
  };
  template <class V>
  void update(V& w, const V& g, State<V>& state, const optim::StepInfo& step) const {
    using std::sqrt;
    state.first = 2 + state.first - g * 0.5f + (1 - g);
    state.second = state.second + 1 / (g * g + 1) + sqrt(g * g) / 4;
    state.third = (state.third - 3) / 2 + -g;
    w = w - step.lr_factor * (state.first * state.second / (state.third * state.third + 1.0));
  }
};

/// A rule without state that ignores the step.
struct Descent {
  template <class V>
  struct State {};
  template <class V>
  void update(V& w, const V& g, State<V>&, const optim::StepInfo&) const {
    w = w - 0.25f * g;
  }
};

/// A rule that passes vectors to a function that is compiled for the baseline registers.
struct Distant {
  template <class V>
  struct State {};
  template <class V>
  [[gnu::noinline]] static V square_and_more(V x) {
    return x * x + x;
  }
  template <class V>
  void update(V& w, V g, State<V>&, const optim::StepInfo&) const {
    w = w - square_and_more(g);
  }
};

static_assert(optim::state_fields<EveryOperation> == 3 && optim::state_fields<Descent> == 0 && optim::state_fields<optim::Sgd> == 1);

/// Compares some steps of update on `count` elements with the rule in double, one element at a time.
template <class T, class Rule>
void check_against_scalar(const Cpu& cpu, const Rule& rule, Index count, double tolerance) {
  constexpr std::size_t fields = optim::state_fields<Rule>;
  const T guard = 1234;
  const auto size = static_cast<std::size_t>(count);
  auto parameters = support::normal<T>(count, 1);
  std::vector<double> scalar_parameters(parameters.begin(), parameters.end());
  std::vector<T> state(fields * size);
  std::vector<typename Rule::template State<double>> scalar_state(size);
  parameters.push_back(guard);
  state.push_back(guard);

  for (int number = 1; number <= 5; ++number) {
    const auto gradients = support::normal<T>(count, 10 + number);
    const optim::StepInfo info{number, 1.0f / static_cast<float>(number)};
    const auto step = optim::constants(rule, info);
    support::update<fields>(cpu, rule, info, std::span{parameters}.first(size), std::span<const T>{gradients},
                            std::span{state}.first(fields * size));
    for (std::size_t i = 0; i < size; ++i) rule.update(scalar_parameters[i], static_cast<double>(gradients[i]), scalar_state[i], step);
  }

  CHECK(parameters.back() == guard);
  CHECK(state.back() == guard);
  parameters.pop_back();
  state.pop_back();
  CHECK(support::difference(parameters, scalar_parameters) < tolerance);
  // The state holds the first field of all elements, then the second, and so on.
  std::vector<double> scalar_fields(fields * size);
  if constexpr (fields > 0)
    for (std::size_t i = 0; i < size; ++i) {
      const auto numbers = std::bit_cast<std::array<double, fields>>(scalar_state[i]);
      for (std::size_t k = 0; k < fields; ++k) scalar_fields[k * size + i] = numbers[k];
    }
  CHECK(support::difference(state, scalar_fields) < tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("update matches the scalar rule for any number of elements", "[host][optim]", float, double) {
  const Index count = GENERATE(as<Index>{}, 0, 1, 3, 4, 5, 7, 8, 9, 15, 17, 1000);
  const double tolerance = 100 * static_cast<double>(std::numeric_limits<TestType>::epsilon());
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  INFO(count << " elements");
  check_against_scalar<TestType>(cpu, Descent{}, count, tolerance);
  check_against_scalar<TestType>(cpu, EveryOperation{}, count, tolerance);
  check_against_scalar<TestType>(cpu, optim::Sgd{.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .nesterov = true}, count, tolerance);
  check_against_scalar<TestType>(cpu, optim::Adam{.lr = 0.01f, .weight_decay = 0.1f}, count, tolerance);
  check_against_scalar<TestType>(cpu, optim::AdamW{.lr = 0.01f, .weight_decay = 0.1f}, count, tolerance);
}

TEST_CASE("update needs no memory for the state of Sgd if the momentum is 0", "[host][optim]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const optim::Sgd rule{.lr = 0.5f};
  REQUIRE(optim::needed_state_fields(rule) == 0);
  auto parameters = support::normal(100, 1);
  const auto gradients = support::normal(100, 2);
  std::vector<double> expected(parameters.begin(), parameters.end());
  for (std::int64_t number = 1; number <= 3; ++number) {
    support::update<1>(cpu, rule, optim::StepInfo{number, 1}, std::span{parameters}, std::span<const float>{gradients}, std::span<float>{});
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.5 * static_cast<double>(gradients[i]);
  }
  CHECK(support::difference(parameters, expected) < 1e-6);
}

TEST_CASE("update supports a rule that calls a function that is not inlined", "[host][optim]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  std::vector<float> parameters(37, 1);
  const std::vector<float> gradients(37, 2);
  support::update<0>(cpu, Distant{}, optim::StepInfo{}, std::span{parameters}, std::span{gradients}, std::span<float>{});
  CHECK(parameters == std::vector<float>(37, 1 - 6));
}

TEST_CASE("update flushes denormals to zero and restores the mode of the calling thread", "[host][optim]") {
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  std::vector<float> parameters(37, 1), velocity(37, 1.5f * std::numeric_limits<float>::min());
  const std::vector<float> gradients(37, 0);
  support::update<1>(cpu, optim::Sgd{.momentum = 0.5f}, optim::StepInfo{}, std::span{parameters}, std::span{gradients},
                     std::span{velocity});
  for (const float each : velocity) CHECK(std::fpclassify(each) == FP_ZERO);
  volatile float least = std::numeric_limits<float>::min();
  least = least / 2;
  CHECK(least > 0);
}

TEST_CASE("update with Adam gives each element the same bits however a span is cut", "[host][optim]") {
  // A sharded optimizer updates slices. Their bits must equal those of an update of the whole.
  constexpr std::size_t count = 100;
  const optim::Adam rule{.lr = 0.01f, .weight_decay = 0.1f};
  const auto gradients = support::normal(count, 2);
  auto whole = support::normal(count, 1), cut = whole;
  std::vector<float> whole_state(2 * count), left_state(2 * 37), right_state(2 * 63);
  for (int number = 1; number <= 3; ++number) {
    const optim::StepInfo step{number, 1};
    support::update<2>(Cpu{}, rule, step, std::span{whole}, std::span<const float>{gradients}, std::span{whole_state});
    support::update<2>(Cpu{}, rule, step, std::span{cut}.first(37), std::span<const float>{gradients}.first(37), std::span{left_state});
    support::update<2>(Cpu{}, rule, step, std::span{cut}.subspan(37), std::span<const float>{gradients}.subspan(37),
                       std::span{right_state});
  }
  CHECK(pdp::testing::same_bits(whole, cut));
}

TEST_CASE("update sums several gradients in order and writes copies of the parameters", "[host][optim]") {
  const Cpu cpu{.threads = GENERATE(1, 3), .registers = GENERATE(from_range(support::registers()))};
  const auto count = static_cast<std::size_t>(GENERATE(1, 17, 40'001));
  const auto ranks = static_cast<std::size_t>(GENERATE(1, 2, 5));
  const optim::Adam rule{.lr = 0.01f, .weight_decay = 0.1f};
  std::vector<std::vector<float>> gradients, copies(ranks - 1, std::vector<float>(count + 1, -1));
  std::vector<const float*> from;
  std::vector<float*> to;
  for (std::size_t rank = 0; rank < ranks; ++rank) gradients.push_back(support::normal(static_cast<Index>(count), static_cast<int>(rank)));
  for (const auto& each : gradients) from.push_back(each.data());
  for (auto& each : copies) to.push_back(each.data());
  std::vector<float> sum = gradients.front();
  for (std::size_t rank = 1; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i) sum[i] += gradients[rank][i];

  auto updated = support::normal(static_cast<Index>(count), 9), expected = updated;
  std::vector<float> state(2 * count), expected_state = state;
  for (int number = 1; number <= 2; ++number) {
    const optim::StepInfo step{number, 1};
    const pdp::StepNumbers numbers{.info = step};
    pdp::cpu::update<2>(cpu, rule, &numbers, std::span{updated}, std::span<const float* const>{from}, std::span{state},
                        std::span<float* const>{to});
    support::update<2>(Cpu{.registers = cpu.registers}, rule, step, std::span{expected}, std::span<const float>{sum},
                       std::span{expected_state});
  }
  CHECK(pdp::testing::same_bits(updated, expected));
  CHECK(pdp::testing::same_bits(state, expected_state));
  for (auto& each : copies) {
    CHECK(each.back() == -1);
    each.pop_back();
    CHECK(pdp::testing::same_bits(each, expected));
  }
}

TEMPLATE_TEST_CASE("update scales gradients by the factor of the step, and a skipped step changes nothing", "[host][optim]", float,
                   double) {
  using T = TestType;
  const Cpu cpu{.registers = GENERATE(from_range(support::registers()))};
  const auto ranks = static_cast<std::size_t>(GENERATE(1, 2));
  const Descent rule{};
  const std::vector<T> gradient{1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 17};
  const std::vector<const T*> from(ranks, gradient.data());
  std::vector<T> parameters(gradient.size(), T{100}), copied = parameters;
  T* const to = copied.data();
  const auto apply = [&](const pdp::StepNumbers& numbers) {
    constexpr std::size_t fields = optim::state_fields<Descent>;
    pdp::cpu::update<fields>(cpu, rule, &numbers, std::span{parameters}, std::span<const T* const>{from}, std::span<T>{},
                             std::span<T* const>{&to, 1});
  };
  apply({.skips = true});
  CHECK(parameters == std::vector<T>(gradient.size(), T{100}));
  CHECK(copied == parameters);

  std::vector<T> once = parameters;
  const pdp::StepNumbers whole{};
  std::vector<T> scaled;
  for (const T each : gradient) scaled.push_back(each * T{0.25} * static_cast<T>(ranks));
  const T* const one = scaled.data();
  pdp::cpu::update<optim::state_fields<Descent>>(cpu, rule, &whole, std::span{once}, std::span{&one, 1}, std::span<T>{});
  apply({.factor = 0.25});
  CHECK(parameters == once);
  CHECK(copied == once);
}
