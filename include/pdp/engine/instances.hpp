#pragma once

#include <cstddef>
#include <span>

#include <pdp/comm/any.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/adapted_plan.hpp>
#include <pdp/engine/averages.hpp>
#include <pdp/engine/boundary_memory.hpp>
#include <pdp/engine/call_memory.hpp>
#include <pdp/engine/check_parameters.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/loss_check.hpp>
#include <pdp/engine/optimizer_state.hpp>
#include <pdp/engine/row_count.hpp>
#include <pdp/engine/slice_sums.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/engine/training_state.hpp>
#include <pdp/engine/unit_calls.hpp>
#include <pdp/engine/unit_memory.hpp>
#include <pdp/nn/parameter_memory.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/sgd.hpp>

/// The template instances that src/core compiles: for the CPU, for the communicator comm::Any, and for pdp's own optimizers.
#ifdef PDP_SEPARATE_CORE

namespace pdp::nn {

extern template class UnitArena<cpu::Cpu, float>;
extern template class UnitArena<cpu::Cpu, double>;
extern template class ParameterMemory<cpu::Cpu, float>;
extern template class ParameterMemory<cpu::Cpu, double>;
extern template class StageParameters<cpu::Cpu, float>;
extern template class StageParameters<cpu::Cpu, double>;

}  // namespace pdp::nn

namespace pdp::engine {

extern template class Averages<cpu::Cpu, float>;
extern template class BoundaryMemory<cpu::Cpu, float>;
extern template class GradientNorm<cpu::Cpu, float>;
extern template class SliceSums<cpu::Cpu, float>;
extern template class Groups<comm::Any>;
extern template class OptimizerState<cpu::Cpu, float>;
extern template class SlicePointers<const float*>;
extern template class SlicePointers<float*>;
extern template class RowCount<comm::Any>;
extern template class TrainingState<comm::Any, cpu::Cpu, float>;
extern template class CallMemory<comm::Any, cpu::Cpu, float>;
extern template class UnitMemory<comm::Any, cpu::Cpu, float>;
extern template class UnitCalls<comm::Any, cpu::Cpu, float, float>;
extern template plan::Plan adapted_plan<float, float>(const comm::Any&, const plan::Plan&, int);
extern template void check_parameters(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const plan::Plan&);
extern template std::vector<float> collect(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const Contributions&);
extern template Timeline collect_timeline(comm::Any&, const cpu::Cpu&, const std::vector<plan::Plan>&, std::span<const Timed>);
extern template void throw_non_finite_gradient(comm::Any&, const cpu::Cpu&, const GradientNorm<cpu::Cpu, float>&, std::int64_t);
extern template void throw_non_finite_loss(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const plan::Plan&,
                                           const std::function<bool(const nn::Parameter&)>&, NonFiniteTensor, const StepNumbers&,
                                           std::int64_t);
extern template void check_finite_parameters(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, std::int64_t);

}  // namespace pdp::engine

namespace pdp::cpu {

#define PDP_UPDATE(Rule, T)                                                                                         \
  extern template void update<optim::state_fields<Rule>>(const Cpu&, const Rule&, const StepNumbers*, std::span<T>, \
                                                         std::span<const T* const>, std::span<T>, std::span<T* const>)
PDP_UPDATE(optim::AddChange, float);
PDP_UPDATE(optim::AddChange, double);
PDP_UPDATE(optim::Sgd, float);
PDP_UPDATE(optim::Sgd, double);
PDP_UPDATE(optim::Adam, float);
PDP_UPDATE(optim::Adam, double);
PDP_UPDATE(optim::AdamW, float);
PDP_UPDATE(optim::AdamW, double);
#undef PDP_UPDATE

}  // namespace pdp::cpu

#endif
