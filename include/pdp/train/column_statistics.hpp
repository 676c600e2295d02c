#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/together.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/column_statistics.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/train/agreement.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/dataset_chunks.hpp>

namespace pdp {

namespace detail {

/// The dataset is divided into so many parts, which ranks share. More ranks than parts do not make column_statistics() faster.
constexpr int statistics_parts = 64;

/// Throws ConfigError if a dataset has no samples, or no values in them.
void check_has_values(Index samples, const Shape& sample);
/// Throws FileError if a value is not finite. `samples`: the sample numbers of the rows.
void check_all_finite(std::span<const float> rows, std::span<const Index> samples);

/// Appends the moments of parts to a list of numbers, and returns the merged moments of such a list.
void append(std::vector<double>& numbers, const data::ColumnMoments& moments);
[[nodiscard]] data::ColumnMoments merged(std::span<const double> numbers, Index samples, Index columns);
/// Returns the merged moments of shares. `ranks`: for each rank its share, the samples of its part, and their moments. If several ranks
/// have a share, the first one counts.
[[nodiscard]] data::ColumnMoments merged_shares(std::span<const double> ranks, int shares, Index columns);

/// Returns the moments of a part of a dataset.
template <data::Dataset D>
data::ColumnMoments moments_of(const D& set, int part) {
  const Index columns = set.sample_shape().elements();
  const data::Rows own = data::shard_rows(set.size(), {part, statistics_parts});
  const Index rows = std::clamp<Index>((Index{1} << 18) / columns, 1, 4096);  // about 1 MiB at once
  data::ColumnMoments moments{columns};
  DatasetChunks chunks{set, own, own.size(), rows};
  while (chunks.next()) {
    check_all_finite(chunks.inputs(), chunks.samples());
    moments.add(chunks.inputs());
  }
  return moments;
}

}  // namespace detail

/// Returns the mean and standard deviation of each value of a dataset's samples. Use them to normalise it (data::normalised), and its test
/// set in the same way. Every rank makes this call with the whole dataset, and reads its share.
///
/// All ranks return the same bits. On processors of one kind, the bits do not depend on the number of ranks. `device` is needed if the
/// communicator takes device memory. Throws ConfigError on every rank if the dataset has no samples, or not the same number on all ranks,
/// and FileError on every rank if a rank cannot read its share or finds a value that is not finite.
template <comm::Communicator C, data::Dataset D, class Dev = cpu::Cpu>
[[nodiscard]] data::ColumnStatistics column_statistics(C& world, const D& set, const Dev& device = {}) {
  static_assert(!comm::HasDeviceBuffers<C> || !Dev::uses_host_memory,
                "pdp: this communicator takes device memory; give column_statistics the device as its third argument");
  static_assert(std::same_as<data::SampleOf<D>, float>, "pdp: the samples of this dataset are tokens, which have no mean");
  const Index columns = set.sample_shape().elements();
  if (world.size() > 1) {
    Agreement agreement;
    agreement.number("samples in the dataset", set.size());
    agreement.number("values in a sample", columns);
    agreement.check(world, device);
  }
  detail::check_has_values(set.size(), set.sample_shape());
  const auto parts_of = [&](int rank) { return data::shard_rows(detail::statistics_parts, {rank, world.size()}); };
  const data::Rows parts = parts_of(world.rank());
  std::vector<double> own;
  checkpoint::on_every_rank(world, device, [&] {
    for (Index part = parts.first; part < parts.last; ++part) detail::append(own, detail::moments_of(set, as_int(part)));
  });

  // Rank 0 merges the parts in their order, so that the result is the same for any number of ranks.
  engine::HostCalls calls{world, device};
  const std::size_t of_part = 2 * as_size(columns);
  std::vector<std::size_t> bytes;
  for (int rank = 0; rank < world.size(); ++rank) bytes.push_back(as_size(parts_of(rank).size()) * of_part * sizeof(double));
  std::vector<double> all(world.rank() == 0 ? of_part * detail::statistics_parts : 0);
  calls.gather(std::as_bytes(std::span{own}), std::as_writable_bytes(std::span{all}), std::span<const std::size_t>{bytes}, 0);
  data::ColumnStatistics statistics{set.size(), std::vector<double>(as_size(columns)), std::vector<double>(as_size(columns))};
  if (world.rank() == 0) statistics = detail::merged(all, set.size(), columns).statistics();
  calls.broadcast(std::as_writable_bytes(std::span{statistics.mean}), 0);
  calls.broadcast(std::as_writable_bytes(std::span{statistics.deviation}), 0);
  return statistics;
}

/// Returns the same of all parts of a dataset together. Each rank reads its part. All ranks return the same bits, which depend in their
/// last places on the division. On one rank, PerRank{set} gives the bits of set.
///
/// `share`: that of this rank, as Trainer::share() returns it, if several ranks have the same part, as in a pipeline. Default: each rank
/// has a part of its own. Throws ConfigError on every rank if all parts are empty, if samples differ in size, or if ranks with the same
/// share have different parts; and FileError as above.
template <comm::Communicator C, data::Dataset D, class Dev = cpu::Cpu>
[[nodiscard]] data::ColumnStatistics column_statistics(C& world, const data::PerRank<D>& set, const Dev& device = {},
                                                       std::optional<data::Shard> share = {}) {
  static_assert(!comm::HasDeviceBuffers<C> || !Dev::uses_host_memory,
                "pdp: this communicator takes device memory; give column_statistics the device as its third argument");
  const data::Shard own_share = share.value_or(data::Shard{world.rank(), world.size()});
  checkpoint::on_every_rank(world, device, [&] { data::check_shard(own_share); });
  const Index columns = set.sample_shape().elements();
  if (world.size() > 1) {
    Agreement agreement;
    agreement.number("values in a sample", columns);
    agreement.number("number of shares", Index{own_share.count});
    agreement.check(world, device);
  }
  const detail::DataDivision division = detail::division_of(world, device, data::view_of(set), true, own_share, 0);
  detail::check_has_values(division.samples, set.sample_shape());
  std::vector<double> own{as_double(own_share.index), as_double(set.size())};
  checkpoint::on_every_rank(world, device, [&] {
    data::ColumnMoments moments{columns};
    for (int part = 0; part < detail::statistics_parts; ++part) moments.merge(detail::moments_of(set, part));
    detail::append(own, moments);
  });
  engine::HostCalls calls{world, device};
  std::vector<double> all(own.size() * as_size(world.size()));
  calls.all_gather(std::span<const double>{own}, std::span{all});
  return detail::merged_shares(all, own_share.count, columns).statistics();
}

/// Adds statistics to the values of a checkpoint (Trainer::values), as `name`.samples, `name`.mean and `name`.deviation. A program that
/// uses the model reads them from there.
void store_statistics(checkpoint::Values& values, std::string_view name, const data::ColumnStatistics& statistics);

/// Returns the statistics that store_statistics() has added, to the bit. Throws FileError if there are none of this name, or they are
/// damaged.
[[nodiscard]] data::ColumnStatistics stored_statistics(const checkpoint::Values& values, std::string_view name);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/column_statistics.hpp>
#endif
