#pragma once

#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/any.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/train/agreement.hpp>

/// The template instances that src/core compiles, as in pdp/engine/instances.hpp.
#ifdef PDP_SEPARATE_CORE

namespace pdp {

extern template void Agreement::check(comm::Any&, const cpu::Cpu&) const;

}  // namespace pdp

namespace pdp::checkpoint {

extern template void import_parameters(nn::StageParameters<cpu::Cpu, float>&, const std::vector<Tensor>&, std::string_view);

}  // namespace pdp::checkpoint

#endif
