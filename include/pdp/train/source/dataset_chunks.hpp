#pragma once

/// Definitions for pdp/train/dataset_chunks.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <numeric>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/train/dataset_chunks.hpp>

namespace pdp::detail {

PDP_INLINE SampleChunks::SampleChunks(data::Rows own, Index most, Index rows)
    : rows_{own}, most_{most}, chunk_{rows}, samples_(as_size(rows)) {}

PDP_INLINE bool SampleChunks::next() {
  if (done_ >= most_) return false;
  const Index first = std::min(rows_.first + done_, rows_.last);
  count_ = std::min(chunk_, rows_.last - first);
  std::iota(samples_.begin(), samples_.begin() + count_, first);
  done_ += chunk_;
  return true;
}

}  // namespace pdp::detail
