#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp {

/// A rank's share of a dataset in its order, in chunks of at most so many rows: as many chunks on every rank, the last of which may be
/// empty. Borrows the dataset.
template <data::Dataset Data>
class DatasetChunks {
 public:
  using Target = typename Data::Target;

  DatasetChunks(const Data& data, data::Shard share, Index rows)
      : data_{data},
        rows_{data::shard_rows(data.size(), share)},
        most_{(data.size() + share.count - 1) / share.count},
        chunk_{rows},
        inputs_(as_size(rows * data.sample_shape().elements())),
        targets_(as_size(rows * data.target_shape().elements())),
        samples_(as_size(rows)) {}

  /// Gathers the next chunk. Returns false if there is none left.
  [[nodiscard]] bool next() {
    if (done_ >= most_) return false;
    const Index first = std::min(rows_.first + done_, rows_.last);
    count_ = std::min(chunk_, rows_.last - first);
    std::iota(samples_.begin(), samples_.begin() + count_, first);
    data_.gather(samples(), std::span{inputs_}.first(input_elements()), std::span{targets_}.first(target_elements()));
    done_ += chunk_;
    return true;
  }
  /// The numbers of its samples, their inputs and their targets.
  [[nodiscard]] std::span<const Index> samples() const { return std::span{samples_}.first(as_size(count_)); }
  [[nodiscard]] std::span<const float> inputs() const { return std::span{inputs_}.first(input_elements()); }
  [[nodiscard]] std::span<const Target> targets() const { return std::span{targets_}.first(target_elements()); }

 private:
  [[nodiscard]] std::size_t input_elements() const { return as_size(count_ * data_.sample_shape().elements()); }
  [[nodiscard]] std::size_t target_elements() const { return as_size(count_ * data_.target_shape().elements()); }

  const Data& data_;
  data::Rows rows_;
  Index most_, chunk_, done_ = 0, count_ = 0;
  std::vector<float> inputs_;
  std::vector<Target> targets_;
  std::vector<Index> samples_;
};

}  // namespace pdp
