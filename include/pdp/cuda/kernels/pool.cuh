#pragma once

#include <pdp/core/pooling.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>

/// Pooling, with a thread for each value of y or of the gradient of x. So no two threads write to the same value.
namespace pdp::cuda {

namespace kernel {

inline constexpr float infinity = __builtin_huge_valf();

/// A value of an image or of its windows: number i of a matrix whose channels have rows of `columns` values.
struct Place {
  Index index, channel, row, column;
  __device__ Place(Index i, Index values, Index columns)
      : index{i}, channel{i / values}, row{i % values / columns}, column{i % values % columns} {}
};

/// Returns the larger of two numbers; NaN if one of them is.
__device__ inline float larger(float value, float than) { return value > than || value != value ? value : than; }

/// Calls visit(index in the image) for the values of a window, row by row.
template <class Visit>
__device__ inline void for_each_value(const Pooling& how, const Place& window, const Visit& visit) {
  for (Index k = 0; k < how.vertical.size; ++k) {
    const Index row = how.vertical.position(window.row, k);
    for (Index l = 0; how.vertical.is_inside(row) && l < how.horizontal.size; ++l) {
      const Index column = how.horizontal.position(window.column, l);
      if (how.horizontal.is_inside(column)) visit(row * how.horizontal.extent + column);
    }
  }
}
/// Calls visit(window) for the windows with a position of the image.
template <class Visit>
__device__ inline void for_each_window(const Pooling& how, const Place& position, const Visit& visit) {
  const Index columns = how.horizontal.count(), first = position.channel * how.windows();
  for (Index k = 0; k < how.vertical.size; ++k) {
    const Index row = how.vertical.window(position.row, k);
    for (Index l = 0; row >= 0 && l < how.horizontal.size; ++l)
      if (const Index column = how.horizontal.window(position.column, l); column >= 0)
        visit(Place{first + row * columns + column, how.windows(), columns});
  }
}

template <class T>
struct MaxPool {
  Pooling how;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const {
    const Place window{i, how.windows(), how.horizontal.count()};
    const T* const image = x + window.channel * how.positions();
    float largest = -infinity;
    for_each_value(how, window, [&](Index at) { largest = larger(as_float(image[at]), largest); });
    y[i] = static_cast<T>(largest);
  }
};

template <class T>
struct MaxPoolBackward {
  Pooling how;
  const T *x, *y, *gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const Place position{i, how.positions(), how.horizontal.extent};
    const T* const image = x + position.channel * how.positions();
    const Index own = i % how.positions();
    float sum = 0;
    for_each_window(how, position, [&](const Place& window) {
      const float largest = as_float(y[window.index]);
      Index first = -1;  // of the largest values
      for_each_value(how, window, [&](Index at) { first = first < 0 && !(as_float(image[at]) < largest) ? at : first; });
      if (first == own) sum += as_float(gradient_y[window.index]);
    });
    gradient_x[i] = static_cast<T>(sum);
  }
};

/// Returns the number by which the sum of a window is divided.
__device__ inline Index divisor(const Pooling& how, const Place& window) {
  if (how.counts_padding) return how.vertical.size * how.horizontal.size;
  Index values = 0;
  for_each_value(how, window, [&](Index) { ++values; });
  return values > 0 ? values : 1;
}

template <class T>
struct AveragePool {
  Pooling how;
  const T* x;
  T* y;
  __device__ void operator()(Index i) const {
    const Place window{i, how.windows(), how.horizontal.count()};
    const T* const image = x + window.channel * how.positions();
    float sum = 0;
    for_each_value(how, window, [&](Index at) { sum += as_float(image[at]); });
    y[i] = static_cast<T>(sum / static_cast<float>(divisor(how, window)));
  }
};
template <class T>
struct AveragePoolBackward {
  Pooling how;
  const T* gradient_y;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    float sum = 0;
    for_each_window(how, Place{i, how.positions(), how.horizontal.extent},
                    [&](const Place& window) { sum += as_float(gradient_y[window.index]) / static_cast<float>(divisor(how, window)); });
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
