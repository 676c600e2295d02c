#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/comm/any.hpp>
#include <pdp/core/converted.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/dataset_view.hpp>
#include <pdp/data/loader.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/counting_rows.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/evaluation.hpp>
#include <pdp/train/kept_parameters.hpp>
#include <pdp/train/saver.hpp>

/// The template instances that src/core compiles, as in pdp/engine/instances.hpp.
#ifdef PDP_SEPARATE_CORE

namespace pdp {

extern template void Agreement::check(comm::Any&, const cpu::Cpu&) const;
extern template class Saver<comm::Any, cpu::Cpu, float>;
extern template std::int64_t detail::hash_of_samples(const data::DatasetView<std::int32_t>&, std::uint64_t);
extern template std::int64_t detail::hash_of_samples(const data::DatasetView<std::int32_t, std::int32_t>&, std::uint64_t);
extern template std::int64_t detail::hash_of_samples(const data::DatasetView<float>&, std::uint64_t);
extern template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<std::int32_t>&, bool,
                                                         data::Shard, std::uint64_t);
extern template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<std::int32_t, std::int32_t>&,
                                                         bool, data::Shard, std::uint64_t);
extern template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<float>&, bool, data::Shard,
                                                         std::uint64_t);

extern template data::Loader<data::DatasetView<std::int32_t>> detail::training_loader(const data::DatasetView<std::int32_t>&,
                                                                                      const DataDivision&, const TrainerOptions&, bool,
                                                                                      data::Shard);
extern template data::Loader<data::DatasetView<std::int32_t, std::int32_t>> detail::training_loader(
    const data::DatasetView<std::int32_t, std::int32_t>&, const DataDivision&, const TrainerOptions&, bool, data::Shard);
extern template data::Loader<data::DatasetView<float>> detail::training_loader(const data::DatasetView<float>&, const DataDivision&,
                                                                               const TrainerOptions&, bool, data::Shard);
extern template void check_agreement(comm::Any&, const cpu::Cpu&, const CallArguments&);
extern template std::span<const float> detail::converted(std::span<const double>, std::vector<float>&, std::size_t);
extern template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<float, std::int32_t>&,
                                            const data::DatasetView<std::int32_t>&, const DataDivision&, const plan::Plan&,
                                            Saver<comm::Any, cpu::Cpu, float>&, const checkpoint::Position&, std::span<const metric::Any>,
                                            LossWatch&, std::int64_t);
extern template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<std::int32_t, std::int32_t>&,
                                            const data::DatasetView<std::int32_t, std::int32_t>&, const DataDivision&, const plan::Plan&,
                                            Saver<comm::Any, cpu::Cpu, float>&, const checkpoint::Position&, std::span<const metric::Any>,
                                            LossWatch&, std::int64_t);
extern template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<float, float>&,
                                            const data::DatasetView<float>&, const DataDivision&, const plan::Plan&,
                                            Saver<comm::Any, cpu::Cpu, float>&, const checkpoint::Position&, std::span<const metric::Any>,
                                            LossWatch&, std::int64_t);
extern template class detail::CountingRows<float, std::int32_t>;
extern template class detail::CountingRows<float, float>;
extern template std::vector<std::byte> detail::kept_parameters(nn::StageParameters<cpu::Cpu, float>&);
extern template void detail::set_kept_parameters(nn::StageParameters<cpu::Cpu, float>&, std::span<const std::byte>);

}  // namespace pdp

namespace pdp::data {

extern template class Loader<DatasetView<std::int32_t>>;
extern template class Loader<DatasetView<std::int32_t, std::int32_t>>;
extern template class Loader<DatasetView<float>>;

}  // namespace pdp::data

namespace pdp::checkpoint {

extern template class Save<comm::Any, cpu::Cpu, float>;
extern template void import_parameters(nn::StageParameters<cpu::Cpu, float>&, const std::vector<Tensor>&, std::string_view);

}  // namespace pdp::checkpoint

#endif
