#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>

namespace pdp {

/// The calls on a trainer whose arguments the ranks compare when they begin.
enum class TrainerCall : std::int64_t { step, fit, evaluate, set_parameters };

/// Its name as a user writes it.
constexpr const char* name(TrainerCall call) {
  switch (call) {
    case TrainerCall::step:
      return "step";
    case TrainerCall::fit:
      return "fit";
    case TrainerCall::evaluate:
      return "evaluate";
    case TrainerCall::set_parameters:
      return "set_parameters";
  }
  return "an unknown call";
}

/// What every rank of a training is to be given alike, as numbers that ranks can compare.
class Agreement {
 public:
  /// A number that must be the same on all ranks, to the last bit.
  void number(std::string_view name, std::uint64_t value) { terms_.push_back({name, Kind::whole, static_cast<std::int64_t>(value)}); }
  void number(std::string_view name, Index value) { terms_.push_back({name, Kind::index, value}); }
  void number(std::string_view name, double value) { terms_.push_back({name, Kind::real, std::bit_cast<std::int64_t>(value)}); }
  /// The call that the numbers are of.
  void call(TrainerCall value) { terms_.push_back({"call", Kind::call, static_cast<std::int64_t>(value)}); }
  /// What is computed, and may differ in its last bits on processors that round differently.
  void rough(std::string_view name, double value) { terms_.push_back({name, Kind::rough, std::bit_cast<std::int64_t>(value)}); }
  /// What is given in many numbers, of which ranks compare a hash.
  void all(std::string_view name, const std::vector<std::int64_t>& values) {
    terms_.push_back({name, Kind::hash, random::hash_of(std::span{values})});
  }

  /// Throws ConfigError on every rank, with the same words, where a rank has something else than rank 0. Every rank makes this call.
  template <comm::Communicator C, Device D>
  void check(C& world, const D& device) const {
    std::vector<std::int64_t> own, ranks(terms_.size() * as_size(world.size()));
    for (const Term& term : terms_) own.push_back(term.value);
    engine::HostCalls{world, device}.all_gather(std::span<const std::int64_t>{own}, std::span{ranks});
    for (std::size_t t = 0; t < terms_.size(); ++t)
      for (int rank = 1; rank < world.size(); ++rank) {
        const std::int64_t value = ranks[as_size(rank) * terms_.size() + t];
        if (!same(terms_[t].kind, value, ranks[t])) throw ConfigError{difference(terms_[t], rank, value, ranks[t])};
      }
  }

 private:
  enum class Kind { whole, index, real, rough, hash, call };
  struct Term {
    std::string_view name;
    Kind kind = Kind::whole;
    std::int64_t value = 0;  // of a real number, its bits
  };

  static bool same(Kind kind, std::int64_t left, std::int64_t right) {
    if (kind != Kind::rough) return left == right;
    const auto a = std::bit_cast<double>(left), b = std::bit_cast<double>(right);
    if (!is_finite(a) || !is_finite(b)) return is_nan(a) ? is_nan(b) : left == right;
    return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
  }
  static std::string real(double value) { return is_finite(value) ? fmt::format("{}", value) : text(value); }
  /// A number in words; nothing of what only a hash is known of.
  static std::string words(Kind kind, std::int64_t value) {
    switch (kind) {
      case Kind::whole:
        return fmt::format("{}", static_cast<std::uint64_t>(value));
      case Kind::index:
        return fmt::format("{}", value);
      case Kind::real:
        return real(std::bit_cast<double>(value));
      case Kind::call:
        return name(static_cast<TrainerCall>(value));
      case Kind::rough:
      case Kind::hash:
        break;
    }
    return {};
  }
  static std::string difference(const Term& term, int rank, std::int64_t value, std::int64_t of_first) {
    const std::string given = words(term.kind, value);
    if (term.kind == Kind::call)
      return text("rank ", rank, " calls ", given, ", but rank 0 calls ", words(term.kind, of_first),
                  "; every rank of a training makes the same calls on its trainer, in the same order");
    return text("rank ", rank, " was given ",
                given.empty() ? text("another ", term.name, " than rank 0")
                              : text(term.name, " = ", given, ", but rank 0 ", term.name, " = ", words(term.kind, of_first)),
                "; give every rank of a training the same");
  }

  std::vector<Term> terms_;
};

namespace detail {

/// The sizes of a model's layers, and what they are called; of what is inside a Residual, the sizes.
template <nn::Block Model>
std::vector<std::int64_t> numbers_of(const Model& model, const Shape& input) {
  std::vector<std::int64_t> numbers;
  for (const auto& layer : nn::outline(model, input).layers)
    numbers.insert(numbers.end(), {layer.parameters, layer.in, layer.out, layer.saved});
  nn::for_each_leaf(model, {}, [&]<class L>(const L&, const nn::Path&) {
    for (const char letter : std::string_view{L::name}) numbers.push_back(static_cast<unsigned char>(letter));
  });
  return numbers;
}

inline std::vector<std::int64_t> numbers_of(const plan::Plan& plan) {
  std::vector<std::int64_t> numbers{plan.share.index,  plan.share.count,  plan.tensor.index,
                                    plan.tensor.count, plan.tensor_group, plan.micro_batches};
  for (const plan::Unit& unit : plan.units)
    numbers.insert(numbers.end(), {unit.first, unit.last, unit.group, as_int(unit.sharding), unit.slices, unit.slice, unit.buffer});
  for (const auto& [color, key] : plan.groups) numbers.insert(numbers.end(), {color, key});
  for (const plan::Instructions* list : {&plan.setup, &plan.step, &plan.evaluate}) {
    numbers.push_back(static_cast<std::int64_t>(list->size()));
    for (const plan::Instruction& i : *list)
      numbers.insert(numbers.end(),
                     {as_int(i.op), as_int(i.tensor), i.accumulate ? 1 : 0, i.group, i.micro_batch, i.first, i.last, i.unit, i.peer});
  }
  return numbers;
}

/// Where a rule takes a parameter in two steps, from a first value.
template <optim::Optimizer Rule>
double probe(const Rule& rule, float lr_factor, float value, float first_gradient, float second_gradient) {
  typename Rule::template State<float> state{};
  rule.update(value, first_gradient, state, constants(rule, StepInfo{1, lr_factor}));
  rule.update(value, second_gradient, state, constants(rule, StepInfo{2, lr_factor}));
  return static_cast<double>(value);
}

/// Numbers that cannot be had on this rank, since what it was given is refused, are none: on a rank that is alone with it they differ from
/// those of the others.
template <class F>
std::vector<std::int64_t> if_any(F&& numbers) {
  try {
    return numbers();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace detail

/// Throws ConfigError on every rank where one was given another task, strategy, precision or other options than rank 0, as far as numbers
/// show that: an optimizer is tried on two steps, a schedule on some, and of a model's settings only sizes and the kinds of layers are
/// seen. Every rank makes this call. `placed`: the model as the strategy divides it.
template <SupportedPrecision P, comm::Communicator C, Device D, class TaskType, strategy::Strategy S, nn::Block Placed>
void check_agreement(C& world, const D& device, const TaskType& task, const S& strategy, const Placed& placed,
                     const TrainerOptions& options) {
  if (world.size() == 1) return;
  const plan::GradientPolicy policy = options.gradient_policy();
  const LossScaling scaling = policy.loss_scaling.value_or(LossScaling{});
  const Shape input = input_of(task.model, options);
  const auto bits = [](double number) { return std::bit_cast<std::int64_t>(number); };
  const auto code = [](DType type) { return static_cast<std::int64_t>(type); };
  Agreement agreement;
  agreement.number("global_batch", options.global_batch);
  agreement.number("seed", options.seed);
  agreement.all("model", detail::if_any([&] { return detail::numbers_of(task.model, input); }));
  agreement.all("precision", {code(dtype_of<typename P::compute>), code(dtype_of<typename P::master>), code(dtype_of<typename P::reduce>)});
  agreement.all("strategy", detail::if_any([&] {
                  return detail::numbers_of(strategy.plan(nn::outline(placed, input), {0, world.size()}));
                }));
  agreement.number("clip_norm", policy.clip_norm);
  agreement.all("non_finite", {static_cast<std::int64_t>(policy.non_finite)});
  agreement.all("loss_scaling",
                {policy.loss_scaling ? 1 : 0, bits(scaling.initial), bits(scaling.growth), bits(scaling.backoff), scaling.interval});
  for (const float lr_factor : {1.0f, 1000.0f}) {  // with large steps, what makes weights smaller is seen beside them
    agreement.rough("optimizer", detail::probe(task.optimizer, lr_factor, 0, 0.5f, -0.25f));
    agreement.rough("optimizer", detail::probe(task.optimizer, lr_factor, 1, 0, 0));
  }
  const auto factor = [&](std::int64_t step) { return static_cast<double>(task.schedule.factor(step)); };
  agreement.rough("schedule", factor(0));
  for (std::int64_t step = 1; step <= std::int64_t{1} << 16; step *= 2) agreement.rough("schedule", factor(step));
  agreement.check(world, device);
}

/// What a call on a trainer was given. A call leaves out what it does not take.
struct CallArguments {
  TrainerCall call = TrainerCall::step;
  Index epochs = 0, epochs_before = 0;
  bool shuffle = false;
  Index samples = 0;  // of the dataset
  Shape sample{}, target{};
  std::int64_t parameters = 0;  // a hash of those that were set
};

/// Throws ConfigError on every rank if one makes another call than rank 0, or makes it with other arguments. Every rank makes this call.
template <comm::Communicator C, Device D>
void check_agreement(C& world, const D& device, const CallArguments& given) {
  if (world.size() == 1) return;
  const auto extents = [](const Shape& shape) {
    std::vector<std::int64_t> all;
    for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
    return all;
  };
  Agreement agreement;
  agreement.call(given.call);
  agreement.number("epochs", given.epochs);
  agreement.number("epochs before this call", given.epochs_before);
  agreement.number("shuffle", given.shuffle ? Index{1} : Index{0});
  agreement.number("samples in the dataset", given.samples);
  agreement.number("values in a sample", given.sample.known() ? given.sample.elements() : 0);
  agreement.all("shape of samples", extents(given.sample));
  agreement.number("values in a target", given.target.known() ? given.target.elements() : 0);
  agreement.all("shape of targets", extents(given.target));
  agreement.all("set of parameters", {given.parameters});
  agreement.check(world, device);
}

}  // namespace pdp
