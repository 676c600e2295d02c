#pragma once

#include <cstddef>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/memory.hpp>
#include <pdp/cpu/tag.hpp>
#include <pdp/cpu/update.hpp>
#include <pdp/nn/parameter_memory.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

/// What src/core compiles of templates that know nothing of a CPU, or of pdp's own optimizers: their instances for these.
#ifdef PDP_SEPARATE_CORE

namespace pdp::nn {

extern template class UnitArena<cpu::Cpu, float>;
extern template class UnitArena<cpu::Cpu, double>;
extern template class ParameterMemory<cpu::Cpu, float>;
extern template class ParameterMemory<cpu::Cpu, double>;

}  // namespace pdp::nn

namespace pdp::cpu {

#define PDP_UPDATE(Rule, T)                                                                                         \
  extern template void update<optim::state_fields<Rule>>(const Cpu&, const Rule&, const StepNumbers*, std::span<T>, \
                                                         std::span<const T* const>, std::span<T>, std::span<T* const>)
PDP_UPDATE(optim::Sgd, float);
PDP_UPDATE(optim::Sgd, double);
PDP_UPDATE(optim::Adam, float);
PDP_UPDATE(optim::Adam, double);
PDP_UPDATE(optim::AdamW, float);
PDP_UPDATE(optim::AdamW, double);
#undef PDP_UPDATE

}  // namespace pdp::cpu

#endif
