#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

/// A Dataset over the user's own numbers, which are used unchanged. Copies share the memory.
template <TargetElement T>
class InMemory {
 public:
  using Target = T;

  /// Takes `x`, [samples, sample_shape], and `y`, [samples, target_shape], both row-major. Throws ShapeError if a size does not fit its
  /// shape, or a shape is empty or has an extent below 1.
  InMemory(Shape sample_shape, std::vector<float> x, std::vector<Target> y, Shape target_shape = Shape{1});

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return sample_shape_; }
  [[nodiscard]] Shape target_shape() const { return target_shape_; }

  /// Copies samples as described by the concept Dataset.
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const;

 private:
  struct Rows;

  Shape sample_shape_;
  Shape target_shape_;
  Index size_ = 0;
  std::shared_ptr<const Rows> rows_;
};

#ifdef PDP_SEPARATE_CORE
extern template class InMemory<std::int32_t>;
extern template class InMemory<float>;
#endif

static_assert(Dataset<InMemory<std::int32_t>>);
static_assert(Dataset<InMemory<float>>);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/in_memory.hpp>
#endif
