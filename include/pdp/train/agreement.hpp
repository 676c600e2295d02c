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
#include <pdp/engine/parameter_settings.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>

namespace pdp {

/// The calls on a Trainer for which the ranks compare their arguments.
enum class TrainerCall : std::int64_t { step, fit, evaluate, set_parameters, copy_parameters, set_learning_rate_factor };

/// Returns the name of the member function of Trainer.
const char* name(TrainerCall call);

/// Values that must be equal on every rank of a training, as numbers that the ranks exchange and compare.
class Agreement {
 public:
  /// Adds a number that must be bitwise equal on all ranks.
  void number(std::string_view name, std::uint64_t value);
  /// `remedy`: the end of the message if it differs; empty: to give all ranks the same value.
  void number(std::string_view name, Index value, std::string_view remedy = {});
  void number(std::string_view name, double value);
  /// Adds the call that the numbers belong to.
  void call(TrainerCall value);
  /// Adds a computed number, which may differ in its last bits between processors that round differently.
  void rough(std::string_view name, double value);
  /// Adds a list of numbers. The ranks compare only a hash of it. `remedy`: as for number().
  void all(std::string_view name, const std::vector<std::int64_t>& values, std::string_view remedy = {});

  /// Throws ConfigError with the same message on every rank if a rank has a value that differs from that of rank 0. Every rank makes this
  /// call.
  template <comm::Communicator C, Device D>
  void check(C& world, const D& device) const;

 private:
  enum class Kind { whole, index, real, rough, hash, call };
  struct Term {
    std::string_view name;
    Kind kind = Kind::whole;
    std::int64_t value = 0;  // for a real number, its bits
    std::string_view remedy{};
  };

  [[nodiscard]] std::vector<std::int64_t> values() const;
  /// Throws ConfigError if the values of a rank differ from those of rank 0. `ranks` holds the values of all ranks in their order.
  void compare(const std::vector<std::int64_t>& ranks) const;
  static bool same(Kind kind, std::int64_t left, std::int64_t right);
  static std::string real(double value);
  /// Returns a number as text, or an empty string for kinds that a message does not show (rough and hash).
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

/// The arguments of a Trainer as numbers.
struct TrainerArguments {
  std::vector<std::int64_t> model{}, strategy{};
  std::array<DType, 3> precision{};
  std::array<double, 4> optimizer{};  // parameters after two steps each
  std::vector<std::int64_t> parameter_groups{};
  std::array<double, 18> schedule{};  // learning-rate factors of some steps
};

/// The arguments of a call on a Trainer. Arguments that a call does not have keep their defaults.
struct CallArguments {
  TrainerCall call = TrainerCall::step;
  Index epochs = 0, epochs_before = 0, steps = 0;
  bool shuffle = false;
  bool per_rank = false;  // the dataset is a data::PerRank
  Index samples = 0;      // in the dataset, unless it is a data::PerRank
  Shape sample{}, target{};
  std::int64_t data = 0;                   // hash of some samples, unless the dataset is a data::PerRank
  std::int64_t parameters = 0;             // hash of the parameters to set
  std::vector<std::int64_t> checkpoint{};  // options, as numbers
  bool validates = false;                  // there is a validation set
  std::vector<std::int64_t> metrics{};     // hashes of their names
  std::vector<std::int64_t> training_metrics{};
  Index callbacks = 0;  // their number
  double learning_rate_factor = 1;
};

namespace detail {

/// Returns the sizes of a model's layers, their names, and the initializers of their parameters. Layers inside a Residual count by their
/// sizes and initializers only.
[[nodiscard]] std::vector<std::int64_t> numbers_of(const nn::Outline& model, const std::vector<nn::LayerParameter>& parameters);
[[nodiscard]] std::vector<std::int64_t> numbers_of(const plan::Plan& plan);

/// Returns everything that ranks compare when they make a trainer, and for a call on it.
[[nodiscard]] Agreement agreement_of(const TrainerArguments& given, const TrainerOptions& options);
[[nodiscard]] Agreement agreement_of(const CallArguments& given);

template <nn::Block Model>
std::vector<std::int64_t> numbers_of(const Model& model, const Shape& input) {
  return numbers_of(nn::outline(model, input), nn::parameters_of(model));
}

/// Returns the value of a parameter after two steps of an optimizer rule that start at `value`.
template <optim::Optimizer Rule>
double probe(const Rule& rule, float lr_factor, float value, float first_gradient, float second_gradient) {
  typename Rule::template State<float> state{};
  rule.update(value, first_gradient, state, constants(rule, StepInfo{1, lr_factor}));
  rule.update(value, second_gradient, state, constants(rule, StepInfo{2, lr_factor}));
  return as_double(value);
}

/// Returns numbers(), or an empty list if it throws because this rank's arguments are invalid. If only this rank has invalid arguments, the
/// comparison finds that its list differs from the others.
template <class F>
std::vector<std::int64_t> if_any(F&& numbers) {
  try {
    return numbers();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace detail

/// Throws ConfigError on every rank if a rank has another task, strategy, precision or other options than rank 0, as far as numbers show
/// that. An optimizer is tried for two steps, and a schedule at some steps. Parameter groups count by their effect on each parameter. Of a
/// model, the sizes, kinds and initializers of its layers are compared. Every rank makes this call. `placed` is the model as the strategy
/// divides it.
template <SupportedPrecision P, comm::Communicator C, Device D, class TaskType, nn::Block Placed>
void check_agreement(C& world, const D& device, const TaskType& task, strategy::StrategyRef strategy, const Placed& placed,
                     const TrainerOptions& options) {
  if (world.size() == 1) return;
  const Shape input = input_of(task.model, options);
  TrainerArguments given{.precision = {dtype_of<typename P::compute>, dtype_of<typename P::master>, dtype_of<typename P::reduce>}};
  given.model = detail::if_any([&] { return detail::numbers_of(task.model, input); });
  given.strategy = detail::if_any([&] { return detail::numbers_of(strategy.plan(nn::outline(placed, input), {0, world.size()})); });
  std::size_t at = 0;
  for (const float lr_factor : {1.0f, 1000.0f}) {  // large steps make weight decay visible beside the gradient
    given.optimizer[at++] = detail::probe(task.optimizer, lr_factor, 0, 0.5f, -0.25f);
    given.optimizer[at++] = detail::probe(task.optimizer, lr_factor, 1, 0, 0);
  }
  given.parameter_groups =
      detail::if_any([&] { return engine::numbers_of(engine::groups_of(task.optimizer), nn::parameters_of(task.model)); });
  for (std::size_t number = 0; number < given.schedule.size(); ++number)  // steps 0, 1, 2, 4, ... 65536
    given.schedule[number] = as_double(task.schedule.factor(number == 0 ? 0 : std::int64_t{1} << (number - 1)));
  detail::agreement_of(given, options).check(world, device);
}

/// Throws ConfigError on every rank if a rank makes another call than rank 0, or with other arguments. Every rank makes this call.
template <comm::Communicator C, Device D>
void check_agreement(C& world, const D& device, const CallArguments& given) {
  if (world.size() > 1) detail::agreement_of(given).check(world, device);
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/agreement.hpp>
#endif
