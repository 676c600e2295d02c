// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/instances.hpp>
#include <pdp/loss/source/cross_entropy.hpp>
#include <pdp/nn/source/block.hpp>
#include <pdp/nn/source/column_parallel.hpp>
#include <pdp/nn/source/divided.hpp>
#include <pdp/nn/source/initializer.hpp>
#include <pdp/nn/source/multilayer_perceptron.hpp>
#include <pdp/nn/source/outline.hpp>
#include <pdp/nn/source/parameter.hpp>
#include <pdp/nn/source/residual.hpp>

namespace pdp::nn {

template class UnitArena<cpu::Cpu, float>;
template class UnitArena<cpu::Cpu, double>;
template class ParameterMemory<cpu::Cpu, float>;
template class ParameterMemory<cpu::Cpu, double>;

}  // namespace pdp::nn
