#pragma once

/// Definitions for pdp/report/curve.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/curve.hpp>

namespace pdp::report {

namespace detail {

/// Adds a bucket to the one before it.
PDP_INLINE void join(Curve::Bucket& bucket, const Curve::Bucket& next) {
  bucket.last = next.last;
  bucket.not_finite += next.not_finite;
  if (next.values == 0) return;
  if (bucket.values == 0) {
    bucket.low = next.low;
    bucket.high = next.high;
    bucket.mean = next.mean;
  } else {
    bucket.low = std::min(bucket.low, next.low);
    bucket.high = std::max(bucket.high, next.high);
    const double part = as_double(next.values) / as_double(bucket.values + next.values);
    bucket.mean = std::clamp((1 - part) * bucket.mean + part * next.mean, bucket.low, bucket.high);
  }
  bucket.values += next.values;
}

}  // namespace detail

PDP_INLINE Curve::Curve(std::size_t most) : most_{std::max<std::size_t>(2, most + most % 2)}, last_{not_a_number<double>()} {
  buckets_.reserve(most_);
}

PDP_INLINE void Curve::add(std::int64_t step, double value) {
  last_ = value;
  const bool counts = is_finite(value);
  if (!counts && ++not_finite_ == 1) first_not_finite_ = step;
  const double kept = counts ? value : 0;
  const Bucket one{step, step, counts ? 1 : 0, counts ? 0 : 1, kept, kept, kept};
  if (!buckets_.empty() && buckets_.back().size() < per_bucket_) return detail::join(buckets_.back(), one);
  if (buckets_.size() == most_) halve();
  buckets_.push_back(one);
}

PDP_INLINE void Curve::halve() {
  for (std::size_t at = 0; at < buckets_.size(); at += 2) {
    detail::join(buckets_[at], buckets_[at + 1]);
    buckets_[at / 2] = buckets_[at];
  }
  buckets_.resize(buckets_.size() / 2);
  per_bucket_ *= 2;
}

PDP_INLINE double Curve::low() const {
  auto found = not_a_number<double>();
  for (const Bucket& bucket : buckets_)
    if (bucket.values > 0 && (is_nan(found) || bucket.low < found)) found = bucket.low;
  return found;
}

PDP_INLINE double Curve::high() const {
  auto found = not_a_number<double>();
  for (const Bucket& bucket : buckets_)
    if (bucket.values > 0 && (is_nan(found) || bucket.high > found)) found = bucket.high;
  return found;
}

}  // namespace pdp::report
