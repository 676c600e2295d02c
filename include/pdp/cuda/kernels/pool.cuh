#pragma once

#include <pdp/core/pooling.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>

/// Pooling, with a thread for each value of y or of the gradient of x. So no two threads write to the same value.
namespace pdp::cuda {

namespace kernel {

inline constexpr float infinity = __builtin_huge_valf();

/// A value of an image or of its windows: number i of a matrix whose channels have rows of `columns` values.
struct Place {
  Index channel, row, column;
  __device__ Place(Index i, Index values, Index columns) : channel{i / values}, row{i % values / columns}, column{i % values % columns} {}
};

/// Returns the larger of two numbers; NaN if one of them is.
__device__ inline float larger(float value, float than) { return value > than || value != value ? value : than; }

template <class T>
struct MaxPool {
  Pooling how;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const {
    const Place at{i, how.windows(), how.horizontal.count()};
    const T* const image = x + at.channel * how.positions();
    float largest = -infinity;
    for (Index k = 0; k < how.vertical.size; ++k) {
      const Index row = how.vertical.position(at.row, k);
      for (Index l = 0; how.vertical.is_inside(row) && l < how.horizontal.size; ++l) {
        const Index column = how.horizontal.position(at.column, l);
        if (how.horizontal.is_inside(column)) largest = larger(as_float(image[row * how.horizontal.extent + column]), largest);
      }
    }
    y[i] = static_cast<T>(largest);
  }
};

template <class T>
struct MaxPoolBackward {
  Pooling how;
  const T *x, *y, *gradient_y;
  T* gradient_x;

  /// Returns whether position (k, l) of a window has the first of its largest values.
  __device__ bool is_first(const T* image, const Place& of, Index k, Index l, float largest) const {
    for (Index before_k = 0; before_k <= k; ++before_k) {
      const Index row = how.vertical.position(of.row, before_k);
      const Index end = before_k == k ? l : how.horizontal.size;
      for (Index before_l = 0; how.vertical.is_inside(row) && before_l < end; ++before_l) {
        const Index column = how.horizontal.position(of.column, before_l);
        if (how.horizontal.is_inside(column) && !(as_float(image[row * how.horizontal.extent + column]) < largest)) return false;
      }
    }
    return true;
  }
  __device__ void operator()(Index i) const {
    const Place at{i, how.positions(), how.horizontal.extent};
    const T* const image = x + at.channel * how.positions();
    const float value = as_float(x[i]);
    float sum = 0;
    for (Index k = 0; k < how.vertical.size; ++k) {
      const Index row = how.vertical.window(at.row, k);
      for (Index l = 0; row >= 0 && l < how.horizontal.size; ++l) {
        const Index column = how.horizontal.window(at.column, l);
        if (column < 0) continue;
        const Index window = at.channel * how.windows() + row * how.horizontal.count() + column;
        const float largest = as_float(y[window]);
        const Place of{row * how.horizontal.count() + column, how.windows(), how.horizontal.count()};
        if (!(value < largest) && is_first(image, of, k, l, largest)) sum += as_float(gradient_y[window]);
      }
    }
    gradient_x[i] = static_cast<T>(sum);
  }
};

/// Returns the number of positions over which a window's mean is.
__device__ inline Index divisor(const Pooling& how, Index row, Index column) {
  if (how.counts_padding) return how.vertical.size * how.horizontal.size;
  Index rows = 0, columns = 0;
  for (Index k = 0; k < how.vertical.size; ++k) rows += how.vertical.is_inside(how.vertical.position(row, k)) ? 1 : 0;
  for (Index l = 0; l < how.horizontal.size; ++l) columns += how.horizontal.is_inside(how.horizontal.position(column, l)) ? 1 : 0;
  return rows * columns > 0 ? rows * columns : 1;
}

template <class T>
struct AveragePool {
  Pooling how;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const {
    const Place at{i, how.windows(), how.horizontal.count()};
    const T* const image = x + at.channel * how.positions();
    float sum = 0;
    for (Index k = 0; k < how.vertical.size; ++k) {
      const Index row = how.vertical.position(at.row, k);
      for (Index l = 0; how.vertical.is_inside(row) && l < how.horizontal.size; ++l) {
        const Index column = how.horizontal.position(at.column, l);
        if (how.horizontal.is_inside(column)) sum += as_float(image[row * how.horizontal.extent + column]);
      }
    }
    y[i] = static_cast<T>(sum / static_cast<float>(divisor(how, at.row, at.column)));
  }
};
template <class T>
struct AveragePoolBackward {
  Pooling how;
  const T* gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const Place at{i, how.positions(), how.horizontal.extent};
    float sum = 0;
    for (Index k = 0; k < how.vertical.size; ++k) {
      const Index row = how.vertical.window(at.row, k);
      for (Index l = 0; row >= 0 && l < how.horizontal.size; ++l) {
        const Index column = how.horizontal.window(at.column, l);
        if (column < 0) continue;
        const Index window = at.channel * how.windows() + row * how.horizontal.count() + column;
        sum += as_float(gradient_y[window]) / static_cast<float>(divisor(how, row, column));
      }
    }
    gradient_x[i] = static_cast<T>(sum);
  }
};

template <class T>
struct AdaptiveAveragePool {
  AdaptivePooling how;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const {
    const Place at{i, how.windows(), how.horizontal.count};
    const T* const image = x + at.channel * how.positions();
    const Range rows = how.vertical[at.row], columns = how.horizontal[at.column];
    float sum = 0;
    for (Index row = rows.first; row < rows.end; ++row)
      for (Index column = columns.first; column < columns.end; ++column) sum += as_float(image[row * how.horizontal.extent + column]);
    y[i] = static_cast<T>(sum / static_cast<float>((rows.end - rows.first) * (columns.end - columns.first)));
  }
};
template <class T>
struct AdaptiveAveragePoolBackward {
  AdaptivePooling how;
  const T* gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const Place at{i, how.positions(), how.horizontal.extent};
    const Range rows = how.vertical.with(at.row), columns = how.horizontal.with(at.column);
    float sum = 0;
    for (Index row = rows.first; row < rows.end; ++row)
      for (Index column = columns.first; column < columns.end; ++column) {
        const Range of_row = how.vertical[row], of_column = how.horizontal[column];
        const Index values = (of_row.end - of_row.first) * (of_column.end - of_column.first);
        sum += as_float(gradient_y[at.channel * how.windows() + row * how.horizontal.count + column]) / static_cast<float>(values);
      }
    gradient_x[i] = static_cast<T>(sum);
  }
};

}  // namespace kernel

template <Computed T>
void max_pool(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::MaxPool<Stored<T>>{how, stored(x.data), stored(y.data)});
}
template <Computed T>
void max_pool_backward(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x) {
  for_each_element(
      device, stored(gradient_x).size(),
      kernel::MaxPoolBackward<Stored<T>>{how, stored(x.data), stored(y.data), stored(gradient_y.data), stored(gradient_x.data)});
}
template <Computed T>
void average_pool(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::AveragePool<Stored<T>>{how, stored(x.data), stored(y.data)});
}
template <Computed T>
void average_pool(const Device& device, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y) {
  for_each_element(device, stored(y).size(), kernel::AdaptiveAveragePool<Stored<T>>{how, stored(x.data), stored(y.data)});
}
template <Computed T>
void average_pool_backward(const Device& device, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(device, stored(gradient_x).size(),
                   kernel::AveragePoolBackward<Stored<T>>{how, stored(gradient_y.data), stored(gradient_x.data)});
}
template <Computed T>
void average_pool_backward(const Device& device, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(device, stored(gradient_x).size(),
                   kernel::AdaptiveAveragePoolBackward<Stored<T>>{how, stored(gradient_y.data), stored(gradient_x.data)});
}

}  // namespace pdp::cuda
