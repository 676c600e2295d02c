#pragma once

#include <type_traits>
#include <utility>

#include <pdp/core/device.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/train/options.hpp>
#include <pdp/train/trainer_requirements.hpp>

/// Deduction guides of Trainer.
namespace pdp {

template <class C, class S, class TaskType, SupportedPrecision P = Float32, Device D = cpu::Cpu>
class Trainer;

template <class C, class S, class TaskType>
requires(detail::makes_trainer<C, S, TaskType>()) Trainer(C&, const S&, const TaskType&, const TrainerOptions&)
->Trainer<C, S, TaskType>;
template <class C, class S, class TaskType, SupportedPrecision P>
requires(detail::makes_trainer<C, S, TaskType, P>()) Trainer(C&, const S&, const TaskType&, const TrainerOptions&, P)
->Trainer<C, S, TaskType, P>;
template <class C, class S, class TaskType, Device D, SupportedPrecision P = Float32>
requires(detail::makes_trainer<C, S, TaskType, P, D>()) Trainer(C&, const S&, const TaskType&, const TrainerOptions&, const D&, P = {})
->Trainer<C, S, TaskType, P, D>;

/// The type of a Trainer with arguments that do not fit. Its static_asserts say why.
template <class... Given>
class Trainer<detail::NoTrainer<Given...>, void, void> : detail::TrainerRequirements<Given...> {
 public:
  template <class... A>
  Trainer(const A&...) {}
  template <class A, class B, class C, class... More>
  Trainer(const A&, const B&, const C&, const TrainerOptions&, const More&...) {}
  template <class A, class B, class C>
  Trainer(const A&, const B&, const C&, ...) {}
  template <class A, class B>
  Trainer(const A&, const B&, ...) {}
  template <class A>
  Trainer(const A&, ...) {}
};
template <class A, class B, class C, class... More>
Trainer(const A&, const B&, const C&, const TrainerOptions&, const More&...)
    -> Trainer<detail::NoTrainer<A, B, C, const TrainerOptions, const More...>, void, void>;
// An ellipsis also accepts a braced list that does not initialise TrainerOptions.
template <class A, class B, class C>
Trainer(const A&, const B&, const C&, ...) -> Trainer<detail::NoTrainer<A, B, C>, void, void>;
template <class A, class B>
Trainer(const A&, const B&, ...) -> Trainer<detail::NoTrainer<A, B>, void, void>;
template <class A>
Trainer(const A&, ...) -> Trainer<detail::NoTrainer<A>, void, void>;

/// The type of Trainer{world, strategy, task, options, more...}, for a member of a class: TrainerFor<decltype(world), decltype(strategy),
/// decltype(task)>. `More`: the types of a device, of a precision, or of both in this order. Types may be const, or references.
template <class C, class S, class TaskType, class... More>
using TrainerFor = decltype(Trainer{std::declval<std::remove_cvref_t<C>&>(), std::declval<const std::remove_cvref_t<S>&>(),
                                    std::declval<const std::remove_cvref_t<TaskType>&>(), std::declval<const TrainerOptions&>(),
                                    std::declval<const std::remove_cvref_t<More>&>()...});

}  // namespace pdp
