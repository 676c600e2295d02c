// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <cstdint>
#include <string_view>
#include <vector>

#include <pdp/metric/source/states.hpp>
#include <pdp/testing/source/differences.hpp>
#include <pdp/testing/source/equivalence.hpp>
#include <pdp/testing/source/layer_check.hpp>
#include <pdp/testing/source/optimizer.hpp>
#include <pdp/testing/source/ranks.hpp>
#include <pdp/train/instances.hpp>
#include <pdp/train/source/agreement.hpp>
#include <pdp/train/source/callbacks.hpp>
#include <pdp/train/source/checked_plan.hpp>
#include <pdp/train/source/column_statistics.hpp>
#include <pdp/train/source/compare.hpp>
#include <pdp/train/source/data_division.hpp>
#include <pdp/train/source/dataset_checks.hpp>
#include <pdp/train/source/dataset_chunks.hpp>
#include <pdp/train/source/describe.hpp>
#include <pdp/train/source/epoch.hpp>
#include <pdp/train/source/epoch_run.hpp>
#include <pdp/train/source/fit_loop.hpp>
#include <pdp/train/source/log.hpp>
#include <pdp/train/source/loss_watch.hpp>
#include <pdp/train/source/options.hpp>
#include <pdp/train/source/print.hpp>
#include <pdp/train/source/print_epoch.hpp>
#include <pdp/train/source/progress.hpp>
#include <pdp/train/source/report_page.hpp>
#include <pdp/train/source/saver.hpp>
#include <pdp/train/source/timeline.hpp>
#include <pdp/train/source/trainer_parameters.hpp>

namespace pdp {

template void Agreement::check(comm::Any&, const cpu::Cpu&) const;
template class Saver<comm::Any, cpu::Cpu, float>;
template class testing::detail::LayerCheck<float>;
template class testing::detail::LayerCheck<double>;
template std::int64_t detail::hash_of_samples(const data::DatasetView<std::int32_t>&, std::uint64_t);
template std::int64_t detail::hash_of_samples(const data::DatasetView<std::int32_t, std::int32_t>&, std::uint64_t);
template std::int64_t detail::hash_of_samples(const data::DatasetView<float>&, std::uint64_t);
template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<std::int32_t>&, bool, data::Shard,
                                                  std::uint64_t);
template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<std::int32_t, std::int32_t>&, bool,
                                                  data::Shard, std::uint64_t);
template detail::DataDivision detail::division_of(comm::Any&, const cpu::Cpu&, const data::DatasetView<float>&, bool, data::Shard,
                                                  std::uint64_t);

template data::Loader<data::DatasetView<std::int32_t>> detail::training_loader(const data::DatasetView<std::int32_t>&, const DataDivision&,
                                                                               const TrainerOptions&, bool, data::Shard);
template data::Loader<data::DatasetView<std::int32_t, std::int32_t>> detail::training_loader(
    const data::DatasetView<std::int32_t, std::int32_t>&, const DataDivision&, const TrainerOptions&, bool, data::Shard);
template data::Loader<data::DatasetView<float>> detail::training_loader(const data::DatasetView<float>&, const DataDivision&,
                                                                        const TrainerOptions&, bool, data::Shard);
template void check_agreement(comm::Any&, const cpu::Cpu&, const CallArguments&);
template std::span<const float> detail::converted(std::span<const double>, std::vector<float>&, std::size_t);
template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<float, std::int32_t>&,
                                     const data::DatasetView<std::int32_t>&, const DataDivision&, const plan::Plan&,
                                     Saver<comm::Any, cpu::Cpu, float>&, const checkpoint::Position&, std::span<const metric::Any>,
                                     LossWatch&, std::int64_t);
template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<std::int32_t, std::int32_t>&,
                                     const data::DatasetView<std::int32_t, std::int32_t>&, const DataDivision&, const plan::Plan&,
                                     Saver<comm::Any, cpu::Cpu, float>&, const checkpoint::Position&, std::span<const metric::Any>,
                                     LossWatch&, std::int64_t);
template Evaluation detail::evaluate(comm::Any&, const cpu::Cpu&, const EvaluatedModel<float, float>&, const data::DatasetView<float>&,
                                     const DataDivision&, const plan::Plan&, Saver<comm::Any, cpu::Cpu, float>&,
                                     const checkpoint::Position&, std::span<const metric::Any>, LossWatch&, std::int64_t);
template class detail::CountingRows<float, std::int32_t>;
template class detail::CountingRows<float, float>;
template std::vector<std::byte> detail::kept_parameters(nn::StageParameters<cpu::Cpu, float>&);
template void detail::set_kept_parameters(nn::StageParameters<cpu::Cpu, float>&, std::span<const std::byte>);

}  // namespace pdp

namespace pdp::data {

template class Loader<DatasetView<std::int32_t>>;
template class Loader<DatasetView<std::int32_t, std::int32_t>>;
template class Loader<DatasetView<float>>;

}  // namespace pdp::data

namespace pdp::checkpoint {

template class Save<comm::Any, cpu::Cpu, float>;
template void import_parameters(nn::StageParameters<cpu::Cpu, float>&, const std::vector<Tensor>&, std::string_view);

}  // namespace pdp::checkpoint
