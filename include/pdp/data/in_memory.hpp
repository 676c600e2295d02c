#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

/// A Dataset over the user's own numbers, which are taken as they are. Copies share them.
template <TargetElement T>
class InMemory {
 public:
  using Target = T;

  /// `x` is [samples, sample_shape] and `y` is [samples, target_shape], row-major. Throws ShapeError where they do not fit.
  InMemory(Shape sample_shape, std::vector<float> x, std::vector<Target> y, Shape target_shape = Shape{1})
      : sample_shape_{sample_shape}, target_shape_{target_shape}, rows_{std::make_shared<const Rows>(Rows{std::move(x), std::move(y)})} {
    check_extents("sample_shape", sample_shape);
    check_extents("target_shape", target_shape);
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

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return sample_shape_; }
  [[nodiscard]] Shape target_shape() const { return target_shape_; }

  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const {
    check_gather(*this, which, x, y);
    copy_rows(which, rows_->x, x, sample_shape_.elements());
    copy_rows(which, rows_->y, y, target_shape_.elements());
  }

 private:
  struct Rows {
    std::vector<float> x;
    std::vector<Target> y;
  };

  static void check_extents(const char* name, const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] < 1) throw ShapeError{text(name, ": expected extents of 1 or more, found ", text(shape), ". Leave that axis out.")};
    if (!shape.known())
      throw ShapeError{text(name, ": expected 1 to 4 extents, found none. Give the shape of one sample, e.g. Shape{784}.")};
  }

  template <class V>
  static void copy_rows(std::span<const Index> which, const std::vector<V>& from, std::span<V> to, Index width) {
    auto out = to.begin();
    for (const Index sample : which) out = std::copy_n(from.begin() + sample * width, width, out);
  }

  Shape sample_shape_;
  Shape target_shape_;
  Index size_ = 0;
  std::shared_ptr<const Rows> rows_;
};

static_assert(Dataset<InMemory<std::int32_t>>);
static_assert(Dataset<InMemory<float>>);

}  // namespace pdp::data
