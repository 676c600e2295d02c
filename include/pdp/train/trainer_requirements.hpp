#pragma once

#include <type_traits>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/loss_requirements.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/strategy/requirements.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/task.hpp>

/// The requirements of Trainer{world, strategy, task, options}, one static_assert for each mistake.
namespace pdp::detail {

template <class T>
constexpr bool is_task = false;
template <class Model, class Loss, class Optimizer, class Schedule>
constexpr bool is_task<Task<Model, Loss, Optimizer, Schedule>> = true;
template <class T>
constexpr bool is_task<const T> = is_task<T>;

/// Returns whether a Trainer can be made from a communicator, a strategy, a task, a precision and a device.
template <class C, class S, class TaskType, class P = Float32, class D = cpu::Cpu>
constexpr bool makes_trainer() {
  if constexpr (comm::Communicator<C> && strategy::Strategy<S> && is_task<TaskType> && SupportedPrecision<P>) {
    using Model = decltype(TaskType::model);
    using Loss = decltype(TaskType::loss);
    using T = typename P::compute;
    if constexpr (!Device<D, T>) return true;  // the engine reports this
    if constexpr (nn::Block<Model> && loss::Loss<Loss, D, T> && optim::Optimizer<decltype(TaskType::optimizer)> &&
                  optim::Schedule<decltype(TaskType::schedule)>)
      return nn::detail::are_layers_on<D, T>(nn::LeafTypes<Model>{});
  }
  return false;
}

/// Names the argument types of a Trainer that cannot be made.
template <class... Given>
struct NoTrainer {};

/// Reports by static_assert what a task's loss and layers lack on a CPU.
template <class TaskType, class T = float>
struct TaskRequirements {};
template <class Model, class Loss, class Optimizer, class Schedule, class T>
struct TaskRequirements<Task<Model, Loss, Optimizer, Schedule>, T> : loss::detail::LossRequirements<Loss, cpu::Cpu, T>,
                                                                     nn::detail::LayersOnRequirements<nn::LeafTypes<Model>, cpu::Cpu, T> {};

template <class... Given>
struct TrainerRequirements {
  static constexpr bool has_communicator = (comm::Group<Given> || ...), has_strategy = (strategy::Strategy<Given> || ...),
                        has_task = (is_task<Given> || ...);
  static_assert(has_communicator,
                "pdp: the first argument of Trainer must be a communicator, as in Trainer{world, strategy::DataParallel{}, task, "
                "{.global_batch = 256}}");
  static_assert(!has_communicator || has_strategy,
                "pdp: the second argument of Trainer must be a strategy, a type with plan(outline, place), as in Trainer{world, "
                "strategy::DataParallel{}, task, {.global_batch = 256}}");
  static_assert(!has_communicator || !has_strategy || has_task,
                "pdp: the third argument of Trainer must be a Task, as in Trainer{world, strategy::DataParallel{}, task, "
                "{.global_batch = 256}}");
};

template <class C, class S, class TaskType, class... Options>
struct TrainerRequirements<C, S, TaskType, Options...> : TaskRequirements<std::remove_const_t<TaskType>> {
  static constexpr bool strategy_resembles = strategy::detail::StrategyRequirements<S>::resembles;
  static_assert(comm::Communicator<C>,
                "pdp: the first argument of Trainer must be a communicator, but it does not model the concept comm::Communicator");
  static_assert(!comm::Communicator<C> || strategy_resembles,
                "pdp: the second argument of Trainer must be a strategy, a type with plan(outline, place) as the concept "
                "strategy::Strategy requires");
  static_assert(!comm::Communicator<C> || !strategy_resembles || is_task<TaskType>, "pdp: the third argument of Trainer must be a Task");
  static constexpr bool is_right = makes_trainer<C, S, TaskType>();
  static_assert(!is_right || sizeof...(Options) > 0,
                "pdp: the fourth argument of Trainer must be TrainerOptions, with any of its fields in this order: global_batch, seed, "
                "input, clip_norm, non_finite, loss_scaling, threads, as in {.global_batch = 256, .seed = 1}");
  static_assert(!is_right || sizeof...(Options) == 0 || sizeof...(Options) > 1 || std::is_const_v<C>,
                "pdp: the first argument of Trainer must be a variable, which the trainer borrows, and not a temporary");
  static_assert(
      !is_right || sizeof...(Options) < 2,
      "pdp: the arguments after the options of Trainer must be a device, a precision such as Bfloat16Gradients{}, or both in this "
      "order, and the loss and the layers must support them");
};

}  // namespace pdp::detail
