#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>

namespace pdp {

/// The calls on a trainer whose arguments the ranks compare when they begin.
enum class TrainerCall : std::int64_t { step, fit, evaluate, set_parameters };

/// Its name as a user writes it.
const char* name(TrainerCall call);

/// What every rank of a training is to be given alike, as numbers that ranks can compare.
class Agreement {
 public:
  /// A number that must be the same on all ranks, to the last bit.
  void number(std::string_view name, std::uint64_t value);
  void number(std::string_view name, Index value);
  void number(std::string_view name, double value);
  /// The call that the numbers are of.
  void call(TrainerCall value);
  /// What is computed, and may differ in its last bits on processors that round differently.
  void rough(std::string_view name, double value);
  /// What is given in many numbers, of which ranks compare a hash.
  void all(std::string_view name, const std::vector<std::int64_t>& values);

  /// Throws ConfigError on every rank, with the same words, if a rank has something else than rank 0. Every rank makes this call.
  template <comm::Communicator C, Device D>
  void check(C& world, const D& device) const;

 private:
  enum class Kind { whole, index, real, rough, hash, call };
  struct Term {
    std::string_view name;
    Kind kind = Kind::whole;
    std::int64_t value = 0;  // of a real number, its bits
  };

  [[nodiscard]] std::vector<std::int64_t> values() const;
  /// `ranks`: the values of each rank, one rank after another.
  void compare(const std::vector<std::int64_t>& ranks) const;
  static bool same(Kind kind, std::int64_t left, std::int64_t right);
  static std::string real(double value);
  /// A number in words; nothing of what only a hash is known of.
  static std::string words(Kind kind, std::int64_t value);
  static std::string difference(const Term& term, int rank, std::int64_t value, std::int64_t of_first);

  std::vector<Term> terms_;
};

template <comm::Communicator C, Device D>
void Agreement::check(C& world, const D& device) const {
  const std::vector<std::int64_t> own = values();
  std::vector<std::int64_t> ranks(own.size() * as_size(world.size()));
  engine::HostCalls{world, device}.all_gather(std::span<const std::int64_t>{own}, std::span{ranks});
  compare(ranks);
}

/// What a trainer was given, as numbers.
struct TrainerArguments {
  std::vector<std::int64_t> model{}, strategy{};
  std::array<DType, 3> precision{};
  std::array<double, 4> optimizer{};  // where it takes parameters in two steps
  std::array<double, 18> schedule{};  // its factors for some steps
};

/// What a call on a trainer was given. A call leaves out what it does not take.
struct CallArguments {
  TrainerCall call = TrainerCall::step;
  Index epochs = 0, epochs_before = 0;
  bool shuffle = false;
  Index samples = 0;  // of the dataset
  Shape sample{}, target{};
  std::int64_t parameters = 0;  // a hash of those that were set
};

namespace detail {

/// The sizes of a model's layers, and their names. Of what is inside a Residual, the sizes only.
[[nodiscard]] std::vector<std::int64_t> numbers_of(const nn::Outline& model, const std::vector<const char*>& names);
[[nodiscard]] std::vector<std::int64_t> numbers_of(const plan::Plan& plan);

/// Everything that ranks compare before they train.
[[nodiscard]] Agreement agreement_of(const TrainerArguments& given, const TrainerOptions& options);
[[nodiscard]] Agreement agreement_of(const CallArguments& given);

template <nn::Block Model>
std::vector<std::int64_t> numbers_of(const Model& model, const Shape& input) {
  std::vector<const char*> names;
  nn::for_each_leaf(model, {}, [&]<class L>(const L&, const nn::Path&) { names.push_back(L::name); });
  return numbers_of(nn::outline(model, input), names);
}

/// Where a rule takes a parameter in two steps, from a first value.
template <optim::Optimizer Rule>
double probe(const Rule& rule, float lr_factor, float value, float first_gradient, float second_gradient) {
  typename Rule::template State<float> state{};
  rule.update(value, first_gradient, state, constants(rule, StepInfo{1, lr_factor}));
  rule.update(value, second_gradient, state, constants(rule, StepInfo{2, lr_factor}));
  return static_cast<double>(value);
}

/// Numbers that cannot be had on this rank, since its arguments are refused, are none. If only this rank has such arguments, they differ
/// from those of the others.
template <class F>
std::vector<std::int64_t> if_any(F&& numbers) {
  try {
    return numbers();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace detail

/// Throws ConfigError on every rank if one was given another task, strategy, precision or other options than rank 0, as far as numbers
/// show that: an optimizer is tried on two steps, a schedule on some, and of a model's settings only sizes and the kinds of layers are
/// seen. Every rank makes this call. `placed`: the model as the strategy divides it.
template <SupportedPrecision P, comm::Communicator C, Device D, class TaskType, nn::Block Placed>
void check_agreement(C& world, const D& device, const TaskType& task, strategy::StrategyRef strategy, const Placed& placed,
                     const TrainerOptions& options) {
  if (world.size() == 1) return;
  const Shape input = input_of(task.model, options);
  TrainerArguments given{.precision = {dtype_of<typename P::compute>, dtype_of<typename P::master>, dtype_of<typename P::reduce>}};
  given.model = detail::if_any([&] { return detail::numbers_of(task.model, input); });
  given.strategy = detail::if_any([&] { return detail::numbers_of(strategy.plan(nn::outline(placed, input), {0, world.size()})); });
  std::size_t at = 0;
  for (const float lr_factor : {1.0f, 1000.0f}) {  // with large steps, weight decay is seen beside the gradient's part
    given.optimizer[at++] = detail::probe(task.optimizer, lr_factor, 0, 0.5f, -0.25f);
    given.optimizer[at++] = detail::probe(task.optimizer, lr_factor, 1, 0, 0);
  }
  for (std::size_t number = 0; number < given.schedule.size(); ++number)  // steps 0, 1, 2, 4, ... 65536
    given.schedule[number] = static_cast<double>(task.schedule.factor(number == 0 ? 0 : std::int64_t{1} << (number - 1)));
  detail::agreement_of(given, options).check(world, device);
}

/// Throws ConfigError on every rank if one makes another call than rank 0, or makes it with other arguments. Every rank makes this call.
template <comm::Communicator C, Device D>
void check_agreement(C& world, const D& device, const CallArguments& given) {
  if (world.size() > 1) detail::agreement_of(given).check(world, device);
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/agreement.hpp>
#endif
