#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp {

namespace detail {

/// The sample numbers `own` of a dataset, in chunks of at most `rows`. All ranks have the same number of chunks, of which the last ones may
/// be empty. `most`: the largest number of samples that a rank has.
class SampleChunks {
 public:
  SampleChunks(data::Rows own, Index most, Index rows);

  /// Advances to the next chunk. Returns false if there is none left.
  [[nodiscard]] bool next();
  [[nodiscard]] std::span<const Index> samples() const { return std::span{samples_}.first(as_size(count_)); }

 private:
  data::Rows rows_;
  Index most_, chunk_, done_ = 0, count_ = 0;
  std::vector<Index> samples_;
};

}  // namespace detail

/// Reads the samples `own` of a dataset in order, in chunks of at most `rows` samples. All ranks have the same number of chunks, of which
/// the last ones may be empty. `most`: the largest number of samples that a rank has. Borrows the dataset.
template <data::Dataset Data>
class DatasetChunks {
 public:
  using Target = typename Data::Target;
  using Sample = data::SampleOf<Data>;

  DatasetChunks(const Data& data, data::Rows own, Index most, Index rows)
      : data_{data},
        chunks_{own, most, rows},
        inputs_(as_size(rows * data.sample_shape().elements())),
        targets_(as_size(rows * data.target_shape().elements())) {}

  /// Gathers the next chunk. Returns false if there is none left.
  [[nodiscard]] bool next() {
    if (!chunks_.next()) return false;
    data_.gather(samples(), std::span{inputs_}.first(input_elements()), std::span{targets_}.first(target_elements()));
    return true;
  }
  /// The sample numbers, inputs [samples, sample_shape] and targets [samples, target_shape] of the current chunk.
  [[nodiscard]] std::span<const Index> samples() const { return chunks_.samples(); }
  [[nodiscard]] std::span<const Sample> inputs() const { return std::span{inputs_}.first(input_elements()); }
  [[nodiscard]] std::span<const Target> targets() const { return std::span{targets_}.first(target_elements()); }

 private:
  [[nodiscard]] std::size_t input_elements() const { return samples().size() * as_size(data_.sample_shape().elements()); }
  [[nodiscard]] std::size_t target_elements() const { return samples().size() * as_size(data_.target_shape().elements()); }

  const Data& data_;
  detail::SampleChunks chunks_;
  std::vector<Sample> inputs_;
  std::vector<Target> targets_;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/dataset_chunks.hpp>
#endif
