#pragma once

/// Definitions for pdp/train/agreement.hpp; see pdp/core/separate_compilation.hpp.

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
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/initializer.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>

namespace pdp {

PDP_INLINE std::vector<std::int64_t> Agreement::values() const {
  std::vector<std::int64_t> values;
  for (const Term& term : terms_) values.push_back(term.value);
  return values;
}

PDP_INLINE void Agreement::compare(const std::vector<std::int64_t>& ranks) const {
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    for (std::size_t first = terms_.size(); first < ranks.size(); first += terms_.size()) {
      const std::int64_t value = ranks[first + t];
      if (!same(terms_[t].kind, value, ranks[t])) throw ConfigError{difference(terms_[t], as_int(first / terms_.size()), value, ranks[t])};
    }
  }
}

PDP_INLINE bool Agreement::same(Kind kind, std::int64_t left, std::int64_t right) {
  if (kind != Kind::rough) return left == right;
  const auto a = std::bit_cast<double>(left), b = std::bit_cast<double>(right);
  if (!is_finite(a) || !is_finite(b)) return is_nan(a) ? is_nan(b) : left == right;
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

PDP_INLINE std::string Agreement::real(double value) { return is_finite(value) ? fmt::format("{}", value) : text(value); }

PDP_INLINE std::string Agreement::words(Kind kind, std::int64_t value) {
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

PDP_INLINE std::string Agreement::difference(const Term& term, int rank, std::int64_t value, std::int64_t of_first) {
  const std::string given = words(term.kind, value);
  if (term.kind == Kind::call)
    return text("rank ", rank, " calls ", given, ", but rank 0 calls ", words(term.kind, of_first),
                "; every rank of a training makes the same calls on its trainer, in the same order");
  return text("rank ", rank, " was given ",
              given.empty() ? text("another ", term.name, " than rank 0")
                            : text(term.name, " = ", given, ", but rank 0 ", term.name, " = ", words(term.kind, of_first)),
              "; ", term.remedy.empty() ? "give all ranks the same value" : term.remedy);
}

PDP_INLINE void Agreement::number(std::string_view name, std::uint64_t value) {
  terms_.push_back({name, Kind::whole, static_cast<std::int64_t>(value)});
}

PDP_INLINE void Agreement::number(std::string_view name, Index value, std::string_view remedy) {
  terms_.push_back({name, Kind::index, value, remedy});
}

PDP_INLINE void Agreement::number(std::string_view name, double value) {
  terms_.push_back({name, Kind::real, std::bit_cast<std::int64_t>(value)});
}

PDP_INLINE void Agreement::call(TrainerCall value) { terms_.push_back({"call", Kind::call, static_cast<std::int64_t>(value)}); }

PDP_INLINE void Agreement::rough(std::string_view name, double value) {
  terms_.push_back({name, Kind::rough, std::bit_cast<std::int64_t>(value)});
}

PDP_INLINE void Agreement::all(std::string_view name, const std::vector<std::int64_t>& values, std::string_view remedy) {
  terms_.push_back({name, Kind::hash, random::hash_of(std::span{values}), remedy});
}

PDP_INLINE const char* name(TrainerCall call) {
  switch (call) {
    case TrainerCall::step:
      return "step";
    case TrainerCall::fit:
      return "fit";
    case TrainerCall::evaluate:
      return "evaluate";
    case TrainerCall::set_parameters:
      return "set_parameters";
    case TrainerCall::set_learning_rate_factor:
      return "set_learning_rate_factor";
    case TrainerCall::copy_parameters:
      return "copy_parameters";
  }
  return "an unknown call";
}

PDP_INLINE std::vector<std::int64_t> detail::numbers_of(const nn::Outline& model, const std::vector<nn::LayerParameter>& parameters) {
  std::vector<std::int64_t> numbers;
  for (const auto& layer : model.layers)
    numbers.insert(numbers.end(), {layer.parameters, layer.in, layer.out, layer.saved, layer.is_frozen ? 1 : 0});
  for (const auto& layer : model.layers)
    for (const char letter : layer.name) numbers.push_back(static_cast<unsigned char>(letter));
  for (const nn::LayerParameter& each : parameters) {
    const nn::Parameter& parameter = each.parameter;
    const nn::Initializer& initializer = parameter.initializer;
    numbers.insert(numbers.end(), {parameter.layer.is_frozen() ? 1 : 0, as_int(initializer.kind), as_int(initializer.fan),
                                   std::bit_cast<std::int64_t>(initializer.numerator), std::bit_cast<std::int64_t>(initializer.mean)});
    if (initializer.own == nullptr) continue;
    // Functions have other addresses in other processes, and their last bits may depend on the processor.
    for (Index element = 0; element < std::min<Index>(parameter.elements(), 2); ++element) {
      const double value = initializer.own(random::make_key(0, "agreement"), element, parameter.fan_in, parameter.fan_out);
      numbers.push_back(std::bit_cast<std::int32_t>(static_cast<float>(value)));
    }
  }
  return numbers;
}

PDP_INLINE std::vector<std::int64_t> detail::numbers_of(const plan::Plan& plan) {
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

PDP_INLINE Agreement detail::agreement_of(const TrainerArguments& given, const TrainerOptions& options) {
  const plan::GradientPolicy policy = options.gradient_policy();
  const LossScaling scaling = policy.loss_scaling.value_or(LossScaling{});
  const auto bits = [](double number) { return std::bit_cast<std::int64_t>(number); };
  std::vector<std::int64_t> precision;
  for (const DType type : given.precision) precision.push_back(static_cast<std::int64_t>(type));
  Agreement agreement;
  agreement.number("global_batch", options.global_batch);
  agreement.number("seed", options.seed);
  agreement.all("model", given.model);
  agreement.all("precision", precision);
  agreement.all("strategy", given.strategy);
  agreement.number("clip_norm", policy.clip_norm);
  agreement.all("non_finite", {static_cast<std::int64_t>(policy.non_finite)});
  agreement.all("loss_scaling",
                {policy.loss_scaling ? 1 : 0, bits(scaling.initial), bits(scaling.growth), bits(scaling.backoff), scaling.interval});
  for (const double value : given.optimizer) agreement.rough("optimizer", value);
  agreement.all("set of parameter groups", given.parameter_groups);
  for (const double factor : given.schedule) agreement.rough("schedule", factor);
  return agreement;
}

PDP_INLINE Agreement detail::agreement_of(const CallArguments& given) {
  const auto extents = [](const Shape& shape) {
    std::vector<std::int64_t> all;
    for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
    return all;
  };
  constexpr std::string_view same_data = "give all ranks the same dataset, or data::PerRank{part} if each rank has a part of its own";
  Agreement agreement;
  agreement.call(given.call);
  agreement.number("epochs", given.epochs);
  agreement.number("epochs before this call", given.epochs_before);
  agreement.number("steps", given.steps);
  agreement.number("shuffle", given.shuffle ? Index{1} : Index{0});
  agreement.number("data::PerRank", given.per_rank ? Index{1} : Index{0}, "give a data::PerRank on all ranks, or on none");
  agreement.number("samples in the dataset", given.samples, same_data);
  agreement.number("values in a sample", given.sample.known() ? given.sample.elements() : 0);
  agreement.all("shape of samples", extents(given.sample));
  agreement.number("values in a target", given.target.known() ? given.target.elements() : 0);
  agreement.all("shape of targets", extents(given.target));
  agreement.all("dataset", {given.data}, same_data);
  agreement.all("set of parameters", {given.parameters});
  agreement.all("options of checkpoints", given.checkpoint);
  agreement.number("validation set", given.validates ? Index{1} : Index{0}, "give one on all ranks, or on none");
  agreement.all("metrics", given.metrics, "give the same metrics in the same order on all ranks");
  agreement.all("training_metrics", given.training_metrics, "give the same metrics in the same order on all ranks");
  agreement.number("callbacks", given.callbacks, "give the same number on all ranks; a callback can look at its rank");
  agreement.number("learning_rate_factor", given.learning_rate_factor);
  return agreement;
}

}  // namespace pdp
