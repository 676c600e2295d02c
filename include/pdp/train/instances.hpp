#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/comm/any.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/saver.hpp>

/// The template instances that src/core compiles, as in pdp/engine/instances.hpp.
#ifdef PDP_SEPARATE_CORE

namespace pdp {

extern template void Agreement::check(comm::Any&, const cpu::Cpu&) const;
extern template class Saver<comm::Any, cpu::Cpu, float>;
extern template std::int64_t detail::hash_of_samples(const data::DatasetView<std::int32_t>&, std::uint64_t);
extern template std::int64_t detail::hash_of_samples(const data::DatasetView<float>&, std::uint64_t);
extern template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<std::int32_t>&, bool,
                                                         data::Shard, std::uint64_t);
extern template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<float>&, bool, data::Shard,
                                                         std::uint64_t);

}  // namespace pdp

namespace pdp::checkpoint {

extern template class Save<comm::Any, cpu::Cpu, float>;
extern template void import_parameters(nn::StageParameters<cpu::Cpu, float>&, const std::vector<Tensor>&, std::string_view);

}  // namespace pdp::checkpoint

#endif
