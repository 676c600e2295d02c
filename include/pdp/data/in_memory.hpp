#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

/// A Dataset over the user's own numbers or tokens, which are used unchanged. Copies share the memory.
template <TargetElement T, SampleElement S = float>
class InMemory {
 public:
  using Target = T;
  using Sample = S;

  /// Takes `x`, [samples, sample_shape], and `y`, [samples, target_shape], both row-major. Throws ShapeError if a size does not fit its
  /// shape, or a shape is empty or has an extent below 1.
  InMemory(Shape sample_shape, std::vector<Sample> x, std::vector<Target> y, Shape target_shape = Shape{1});

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return sample_shape_; }
  [[nodiscard]] Shape target_shape() const { return target_shape_; }

  /// Copies samples as described by the concept Dataset.
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const;

 private:
  struct Rows;

  Shape sample_shape_;
  Shape target_shape_;
  Index size_ = 0;
  std::shared_ptr<const Rows> rows_;
};

#ifdef PDP_SEPARATE_CORE
extern template class InMemory<std::int32_t, float>;
extern template class InMemory<float, float>;
extern template class InMemory<std::int32_t, std::int32_t>;
extern template class InMemory<float, std::int32_t>;
#endif

static_assert(Dataset<InMemory<std::int32_t>>);
static_assert(Dataset<InMemory<float>>);
static_assert(Dataset<InMemory<std::int32_t, std::int32_t>>);

/// Returns a copy of a dataset in memory, so that its samples are read and converted only once.
template <Dataset D>
[[nodiscard]] InMemory<typename D::Target, SampleOf<D>> in_memory(const D& set) {
  std::vector<Index> all(as_size(set.size()));
  std::iota(all.begin(), all.end(), Index{0});
  std::vector<SampleOf<D>> x(as_size(set.size() * set.sample_shape().elements()));
  std::vector<typename D::Target> y(as_size(set.size() * set.target_shape().elements()));
  set.gather(all, x, y);
  return {set.sample_shape(), std::move(x), std::move(y), set.target_shape()};
}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/in_memory.hpp>
#endif
