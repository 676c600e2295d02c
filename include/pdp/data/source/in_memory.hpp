#pragma once

/// Definitions for pdp/data/in_memory.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/in_memory.hpp>

namespace pdp::data {

namespace detail {

PDP_INLINE void check_extents(const char* name, const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] < 1) throw ShapeError{text(name, ": expected extents of 1 or more, found ", text(shape), ". Leave that axis out.")};
  if (!shape.known()) throw ShapeError{text(name, ": expected 1 to 4 extents, found none. Give the shape of one sample, e.g. Shape{784}.")};
}

template <class V>
void copy_rows(std::span<const Index> which, const std::vector<V>& from, std::span<V> to, Index width) {
  auto out = to.begin();
  for (const Index sample : which) out = std::copy_n(from.begin() + sample * width, width, out);
}

}  // namespace detail

template <TargetElement T, SampleElement S>
struct InMemory<T, S>::Rows {
  std::vector<Sample> x;
  std::vector<Target> y;
};

template <TargetElement T, SampleElement S>
InMemory<T, S>::InMemory(Shape sample_shape, std::vector<Sample> x, std::vector<Target> y, Shape target_shape)
    : sample_shape_{sample_shape}, target_shape_{target_shape}, rows_{std::make_shared<const Rows>(Rows{std::move(x), std::move(y)})} {
  detail::check_extents("sample_shape", sample_shape);
  detail::check_extents("target_shape", target_shape);
  const auto values = as_index(rows_->x.size());
  const auto targets = as_index(rows_->y.size());
  size_ = values / sample_shape.elements();
  if (values % sample_shape.elements() != 0)
    throw ShapeError{text("x holds ", values, " values, expected a multiple of the ", sample_shape.elements(), " of one sample of shape ",
                          text(sample_shape), ". Give every sample its full row.")};
  if (targets != size_ * target_shape.elements())
    throw ShapeError{text("y holds ", targets, " values, expected ", size_ * target_shape.elements(), ": x has ", size_,
                          " samples, and a target of shape ", text(target_shape), " has ", target_shape.elements(),
                          ". Give one target for each sample.")};
}

template <TargetElement T, SampleElement S>
void InMemory<T, S>::gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const {
  check_gather(*this, which, x, y);
  detail::copy_rows<S>(which, rows_->x, x, sample_shape_.elements());
  detail::copy_rows<T>(which, rows_->y, y, target_shape_.elements());
}

}  // namespace pdp::data
