// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/checkpoint/source/parameters.hpp>
#include <pdp/checkpoint/source/perceptron_widths.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/source/error.hpp>
#include <pdp/core/source/file_size_limit.hpp>
#include <pdp/core/source/label.hpp>
#include <pdp/core/source/shape.hpp>
#include <pdp/core/source/standard_streams.hpp>
#include <pdp/core/source/token.hpp>
#include <pdp/data/source/classification.hpp>
#include <pdp/data/source/column_statistics.hpp>
#include <pdp/data/source/dataset.hpp>
#include <pdp/data/source/gzip.hpp>
#include <pdp/data/source/idx.hpp>
#include <pdp/data/source/image_changes.hpp>
#include <pdp/data/source/in_memory.hpp>
#include <pdp/data/source/input.hpp>
#include <pdp/data/source/loader.hpp>
#include <pdp/data/source/mapped.hpp>
#include <pdp/data/source/mapped_file.hpp>
#include <pdp/data/source/mnist.hpp>
#include <pdp/data/source/next_tokens.hpp>
#include <pdp/data/source/normalised.hpp>
#include <pdp/data/source/npy.hpp>
#include <pdp/data/source/part_batches.hpp>
#include <pdp/data/source/part_sampler.hpp>
#include <pdp/data/source/replace_file.hpp>
#include <pdp/data/source/sampler.hpp>
#include <pdp/data/source/share_order.hpp>
#include <pdp/data/source/shown.hpp>

namespace pdp::data {

template class InMemory<std::int32_t, float>;
template class InMemory<float, float>;
template class InMemory<std::int32_t, std::int32_t>;
template class InMemory<float, std::int32_t>;
template class Mapped<std::int32_t, float>;
template class Mapped<float, float>;
template class Mapped<std::int32_t, std::int32_t>;
template class Mapped<float, std::int32_t>;
template class detail::Prefetch<std::int32_t, float>;
template class detail::Prefetch<float, float>;
template class detail::Prefetch<std::int32_t, std::int32_t>;
template class detail::Prefetch<float, std::int32_t>;

}  // namespace pdp::data

namespace pdp::checkpoint {

template void put(Tensor&, const nn::Parameter&, std::span<const float>);
template void put(Tensor&, const nn::Parameter&, std::span<const double>);
template std::vector<Tensor> export_parameters(const std::vector<nn::LayerParameter>&, const engine::Contributions&,
                                               const std::vector<float>&);
template std::vector<Tensor> export_parameters(const std::vector<nn::LayerParameter>&, const engine::Contributions&,
                                               const std::vector<double>&);
template std::vector<float> detail::Import::values(const nn::Parameter&, Index, std::size_t) const;
template std::vector<double> detail::Import::values(const nn::Parameter&, Index, std::size_t) const;
template std::vector<Float16> detail::Import::values(const nn::Parameter&, Index, std::size_t) const;
template std::vector<BFloat16> detail::Import::values(const nn::Parameter&, Index, std::size_t) const;

}  // namespace pdp::checkpoint
