// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <pdp/cpu/cpu.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/rows.hpp>
#include <pdp/engine/instances.hpp>
#include <pdp/engine/source/batch.hpp>
#include <pdp/engine/source/channels.hpp>
#include <pdp/engine/source/collect.hpp>
#include <pdp/engine/source/non_finite_tensor.hpp>
#include <pdp/engine/source/optimizer_state.hpp>
#include <pdp/engine/source/parameter_settings.hpp>
#include <pdp/engine/source/program.hpp>
#include <pdp/engine/source/recorded_splits.hpp>
#include <pdp/engine/source/step_trace.hpp>
#include <pdp/engine/source/timeline.hpp>

namespace pdp::nn {

template class UnitArena<cpu::Cpu, float>;
template class UnitArena<cpu::Cpu, double>;
template class ParameterMemory<cpu::Cpu, float>;
template class ParameterMemory<cpu::Cpu, double>;
template class StageParameters<cpu::Cpu, float>;
template class StageParameters<cpu::Cpu, double>;

}  // namespace pdp::nn

namespace pdp::engine {

template class Averages<cpu::Cpu, float>;
template class BoundaryMemory<cpu::Cpu, float>;
template class GradientNorm<cpu::Cpu, float>;
template class SliceSums<cpu::Cpu, float>;
template class Groups<comm::Any>;
template class OptimizerState<cpu::Cpu, float>;
template class SlicePointers<const float*>;
template class SlicePointers<float*>;
template class RowCount<comm::Any>;
template class TrainingState<comm::Any, cpu::Cpu, float>;
template class CallMemory<comm::Any, cpu::Cpu, float>;
template class UnitMemory<comm::Any, cpu::Cpu, float>;
template class UnitCalls<comm::Any, cpu::Cpu, float, float>;
template plan::Plan adapted_plan<float, float>(const comm::Any&, const plan::Plan&, int);
template void check_parameters(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const plan::Plan&);
template std::vector<float> collect(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const Contributions&);
template Timeline collect_timeline(comm::Any&, const cpu::Cpu&, const std::vector<plan::Plan>&, std::span<const Timed>);
template void throw_non_finite_gradient(comm::Any&, const cpu::Cpu&, const GradientNorm<cpu::Cpu, float>&, std::int64_t);
template void throw_non_finite_loss(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, const plan::Plan&,
                                    const std::function<bool(const nn::Parameter&)>&, NonFiniteTensor, const StepNumbers&, std::int64_t);
template void check_finite_parameters(comm::Any&, nn::StageParameters<cpu::Cpu, float>&, std::int64_t);

}  // namespace pdp::engine
