#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/train/agreement.hpp>

/// The parameters of a trainer's whole model, gathered from the ranks that hold them. A trainer is any type with the members of Trainer.
namespace pdp::detail {

/// Returns the plans of all ranks as their engines execute them.
template <class TrainerType>
[[nodiscard]] std::vector<plan::Plan> carried_out_plans(TrainerType& trainer) {
  using Engine = std::remove_reference_t<decltype(trainer.engine())>;
  auto& world = trainer.world();
  return Engine::adapted(world, strategy::plans_for(trainer.options().gradient_policy(), trainer.strategy(),
                                                    trainer.engine().stage().outline(), world.size()));
}

/// All parameters of a model. `Master`: the type in which an optimizer updates them.
template <class Master>
class GatheredParameters {
 public:
  /// Gathers the parameters of a trainer on rank 0 of a world, whose ranks are those of the trainer's world. Every rank makes this call.
  template <comm::Communicator C, class TrainerType>
  GatheredParameters(C& world, TrainerType& trainer)
      : model_{trainer.engine().stage().of_model()},
        from_{trainer.engine().stage().outline(), carried_out_plans(trainer),
              std::remove_reference_t<decltype(trainer.engine())>::has_masters ? plan::Sharding::state : plan::Sharding::parameters},
        values_{engine::collect(world, trainer.engine().stage(), from_)} {}

  /// Sends them from rank 0 to the others. Every rank makes this call.
  template <comm::Communicator C, class D>
  void broadcast(C& world, const D& device) {
    values_.resize(as_size(from_.elements()));
    if (world.size() > 1) engine::HostCalls{world, device}.broadcast(std::span{values_}, 0);
  }
  /// Returns them as tensors. On rank 0, or after broadcast().
  [[nodiscard]] std::vector<checkpoint::Tensor> tensors() const { return checkpoint::export_parameters(model_, from_, values_); }

  /// Sets the parameters that a stage of the same model keeps, masters included. On rank 0, or after broadcast().
  template <class D, class T>
  void set(nn::StageParameters<D, T>& stage) const {
    stage.for_each_kept([&]<class E>(const nn::Parameter& parameter, Index first, std::span<E> values) {
      const std::vector<Master> whole = in_file_order(parameter.full_name());
      const random::Elements numbers = parameter.file_numbers(first);
      std::vector<E> kept(values.size());
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<E>(whole[as_size(numbers[as_index(i)])]);
      upload(stage.device(), std::span<const E>{kept}, values.data());
    });
  }

 private:
  /// Returns the values of the parameter with this name, in the order in which files hold them.
  [[nodiscard]] std::vector<Master> in_file_order(std::string_view name) const {
    const auto& [parameter, layer] =
        *std::ranges::find_if(model_, [name](const nn::LayerParameter& each) { return each.parameter.full_name() == name; });
    std::vector<Master> whole(as_size(parameter.file_elements())), values(as_size(parameter.elements()));
    for (int part = 0; part < parameter.row_part.count * parameter.col_part.count; ++part) {
      from_.copy(std::span<const Master>{values_}, layer, part, parameter.offset, std::span{values});
      const nn::Parameter lies = parameter.part(part);
      for (std::size_t i = 0; i < values.size(); ++i) whole[as_size(lies.file_element(as_index(i)))] = values[i];
    }
    return whole;
  }

  std::vector<nn::LayerParameter> model_;
  engine::Contributions from_;
  std::vector<Master> values_;
};

/// Returns a hash of the names and shapes of parameters.
[[nodiscard]] std::int64_t hash_of(const std::vector<nn::LayerParameter>& model);

/// Throws ConfigError unless copy_parameters() can copy from `other`: it must have the same parameters, and a world of the same size.
void check_source(const std::vector<nn::LayerParameter>& own, int ranks, const std::vector<nn::LayerParameter>& other, int other_ranks);

/// Sets the parameters of a trainer to those of another one. Every rank makes this call. Throws as Trainer::copy_parameters() does.
template <class To, class From>
void copy_parameters(To& to, From& from) {
  static_assert(std::same_as<typename To::T, typename From::T>,
                "pdp: copy_parameters() needs a trainer with parameters of the same type: both floats, or both doubles");
  auto& world = to.world();
  auto& stage = to.engine().stage();
  const std::vector<nn::LayerParameter>& other = from.engine().stage().of_model();
  const int ranks = from.world().size(), ahead = ranks == world.size() ? from.world().rank() - world.rank() : 0;
  const std::vector<std::int64_t> mark{hash_of(other), from.steps(), ranks, ahead};  // ranks must not give different trainers
  check_agreement(world, stage.device(),
                  {.call = TrainerCall::copy_parameters, .parameters = random::hash_of(std::span<const std::int64_t>{mark})});
  check_source(stage.of_model(), world.size(), other, ranks);
  GatheredParameters<typename From::T> all{world, from};
  all.broadcast(world, stage.device());
  all.set(stage);
}

}  // namespace pdp::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/trainer_parameters.hpp>
#endif
