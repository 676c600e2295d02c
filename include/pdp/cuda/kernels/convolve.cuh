#pragma once

#include <algorithm>

#include <pdp/core/convolution.hpp>
#include <pdp/cuda/kernels/elementwise.cuh>

/// Convolutions as products of matrices whose elements are read from images and weights as they are ("implicit GEMM"): no matrix of windows
/// is ever in memory.
namespace pdp::cuda {

namespace kernel {

/// A product has `groups` matrices of rows x cols, each a sum over `depth` products. The type of a product has the functions
///   left(group, row, k)           an element of the left matrix
///   column(group, col)            a function of k: an element of the right matrix
///   write(group, slice, row, col, sum)
struct ProductSizes {
  Index groups, rows, cols, depth;
};

/// A block computes a tile of tile x tile elements, and each of its threads of_thread x of_thread of them. `depth_at_once` columns of the
/// left matrix and rows of the right one are in shared memory. Block b computes tile b % tiles of slice b / tiles of the depth.
constexpr unsigned tile = 64, of_thread = 4, depth_at_once = 16;
static_assert(tile / of_thread * (tile / of_thread) == block_threads);

template <class Product>
__global__ void __launch_bounds__(block_threads) multiply(Product product, ProductSizes sizes, unsigned slices) {
  __shared__ float left[depth_at_once][tile + 2];  // two more, so that the threads of a warp, which write two rows, use different banks
  __shared__ float right[depth_at_once][tile];
  const Index column_tiles = (sizes.cols + tile - 1) / tile, row_tiles = (sizes.rows + tile - 1) / tile;
  const Index column_tile = blockIdx.x % column_tiles, row_tile = blockIdx.x / column_tiles % row_tiles;
  const Index group = blockIdx.x / (column_tiles * row_tiles) % sizes.groups,
              slice = blockIdx.x / (column_tiles * row_tiles * sizes.groups);
  const Index of_slice = (sizes.depth + slices - 1) / slices, begin = slice * of_slice,
              end = begin + of_slice < sizes.depth ? begin + of_slice : sizes.depth;
  const unsigned thread = threadIdx.x;
  const Index own_col = column_tile * tile + thread % tile;
  const bool has_col = own_col < sizes.cols;
  const auto column = product.column(group, has_col ? own_col : 0);
  const unsigned first_row = thread / (tile / of_thread) * of_thread, first_col = thread % (tile / of_thread) * of_thread;
  float sums[of_thread][of_thread] = {};
  for (Index k = begin; k < end; k += depth_at_once) {
    for (unsigned i = thread / tile; i < depth_at_once; i += block_threads / tile)
      right[i][thread % tile] = has_col && k + i < end ? column(k + i) : 0;
    for (unsigned row = thread / depth_at_once; row < tile; row += block_threads / depth_at_once) {
      const unsigned i = thread % depth_at_once;
      const Index at = row_tile * tile + row;
      left[i][row] = at < sizes.rows && k + i < end ? product.left(group, at, k + i) : 0;
    }
    __syncthreads();
    for (unsigned i = 0; i < depth_at_once; ++i)
      for (unsigned row = 0; row < of_thread; ++row)
        for (unsigned col = 0; col < of_thread; ++col) sums[row][col] += left[i][first_row + row] * right[i][first_col + col];
    __syncthreads();
  }
  for (unsigned row = 0; row < of_thread; ++row)
    for (unsigned col = 0; col < of_thread; ++col) {
      const Index at_row = row_tile * tile + first_row + row, at_col = column_tile * tile + first_col + col;
      if (at_row < sizes.rows && at_col < sizes.cols) product.write(group, slice, at_row, at_col, sums[row][col]);
    }
}

/// A row of the matrix of windows: a channel of a group, and a position in the kernel.
struct DepthIndex {
  Index channel, i, j;
  __device__ DepthIndex(const Convolution& how, Index k)
      : channel{k / how.kernel()}, i{k % how.kernel() / how.horizontal.size}, j{k % how.kernel() % how.horizontal.size} {}
};
/// A window, or a position, of one of the rows of a matrix of images.
struct ImageIndex {
  Index image, row, column;
  __device__ ImageIndex(Index n, Index values, Index columns)
      : image{n / values}, row{n % values / columns}, column{n % values % columns} {}
};

/// Returns the value of x at a row of the matrix of windows, for a window: 0 outside the image.
template <class T>
__device__ inline float value_of_window(const Convolution& how, const T* x, Index group, const DepthIndex& at, const ImageIndex& window) {
  const Index row = how.vertical.position(window.row, at.i), column = how.horizontal.position(window.column, at.j);
  if (!how.vertical.is_inside(row) || !how.horizontal.is_inside(column)) return 0;
  const Index channel = window.image * how.channels + group * how.channels_of_group() + at.channel;
  return as_float(x[channel * how.positions() + row * how.horizontal.extent + column]);
}

/// y = weight times the matrix of windows: filters x windows of all images.
template <class T>
struct Convolve {
  Convolution how;
  const T *x, *weight, *bias;
  T* y;
  __device__ float left(Index group, Index row, Index k) const {
    return as_float(weight[(group * how.filters_of_group() + row) * how.depth() + k]);
  }
  struct Column {
    const Convolve& of;
    Index group;
    ImageIndex window;
    __device__ float operator()(Index k) const { return value_of_window(of.how, of.x, group, DepthIndex{of.how, k}, window); }
  };
  __device__ Column column(Index group, Index col) const { return {*this, group, ImageIndex{col, how.windows(), how.horizontal.count()}}; }
  __device__ void write(Index group, Index, Index row, Index col, float sum) const {
    const Index filter = group * how.filters_of_group() + row;
    if (bias != nullptr) sum += as_float(bias[filter]);
    y[(col / how.windows() * how.filters + filter) * how.windows() + col % how.windows()] = static_cast<T>(sum);
  }
};

/// The gradient of x: channels x positions of all images. The depth is that of filters and positions in the kernel.
template <class T>
struct ConvolveBackwardInput {
  Convolution how;
  const T *weight, *gradient_y;
  T* gradient_x;
  __device__ float left(Index group, Index row, Index k) const {
    const Index filter = group * how.filters_of_group() + k / how.kernel();
    return as_float(weight[filter * how.depth() + row * how.kernel() + k % how.kernel()]);
  }
  struct Column {
    const ConvolveBackwardInput& of;
    Index group;
    ImageIndex position;
    __device__ float operator()(Index k) const {
      const Convolution& convolution = of.how;
      const DepthIndex at{convolution, k};  // its channel is a filter here
      const Index row = convolution.vertical.window(position.row, at.i), column = convolution.horizontal.window(position.column, at.j);
      if (row < 0 || column < 0) return 0;
      const Index filter = position.image * convolution.filters + group * convolution.filters_of_group() + at.channel;
      return as_float(of.gradient_y[filter * convolution.windows() + row * convolution.horizontal.count() + column]);
    }
  };
  __device__ Column column(Index group, Index col) const { return {*this, group, ImageIndex{col, how.positions(), how.horizontal.extent}}; }
  __device__ void write(Index group, Index, Index row, Index col, float sum) const {
    const Index channel = col / how.positions() * how.channels + group * how.channels_of_group() + row;
    gradient_x[channel * how.positions() + col % how.positions()] = static_cast<T>(sum);
  }
};

/// The gradients of weight and bias: filters x (depth, and a last column of the bias). The depth of the product is that of the windows of
/// all images. With several slices of it, each slice has sums of its own in `of_slices`.
template <class T>
struct ConvolveBackwardWeight {
  Convolution how;
  const T *x, *gradient_y;
  float *gradient_weight, *gradient_bias;
  bool accumulate;
  float* of_slices;  // null: there is one slice
  __device__ float left(Index group, Index row, Index k) const {
    const Index filter = k / how.windows() * how.filters + group * how.filters_of_group() + row;
    return as_float(gradient_y[filter * how.windows() + k % how.windows()]);
  }
  struct Column {
    const ConvolveBackwardWeight& of;
    Index group;
    DepthIndex at;
    bool is_bias;
    __device__ float operator()(Index k) const {
      return is_bias ? 1 : value_of_window(of.how, of.x, group, at, ImageIndex{k, of.how.windows(), of.how.horizontal.count()});
    }
  };
  __device__ Column column(Index group, Index col) const { return {*this, group, DepthIndex{how, col}, col == how.depth()}; }
  [[nodiscard]] constexpr Index columns() const { return how.depth() + (gradient_bias != nullptr ? 1 : 0); }
  __device__ void add(Index filter, Index col, float sum) const {
    float* const to = col == how.depth() ? gradient_bias + filter : gradient_weight + filter * how.depth() + col;
    *to = (accumulate ? *to : 0) + sum;
  }
  __device__ void write(Index group, Index slice, Index row, Index col, float sum) const {
    const Index filter = group * how.filters_of_group() + row;
    if (of_slices != nullptr)
      of_slices[(slice * how.filters + filter) * columns() + col] = sum;
    else
      add(filter, col, sum);
  }
};
/// Adds the sums of the slices, in their order.
template <class T>
struct AddConvolutionSlices {
  ConvolveBackwardWeight<T> of;
  unsigned slices;
  __device__ void operator()(Index i) const {
    const Index columns = of.columns();
    float sum = 0;
    for (unsigned slice = 0; slice < slices; ++slice) sum += of.of_slices[(slice * of.how.filters) * columns + i];
    of.add(i / columns, i % columns, sum);
  }
};

}  // namespace kernel

namespace detail {

/// Returns the number of tiles of a product.
inline Index tiles_of(const kernel::ProductSizes& sizes) {
  return sizes.groups * ((sizes.rows + kernel::tile - 1) / kernel::tile) * ((sizes.cols + kernel::tile - 1) / kernel::tile);
}
template <class Product>
void multiply(const Device& device, const Product& product, const kernel::ProductSizes& sizes, unsigned slices = 1) {
  if (const Index blocks = tiles_of(sizes) * slices; blocks > 0)
    launch(device, kernel::multiply<Product>, static_cast<unsigned>(blocks), block_threads, product, sizes, slices);
}

}  // namespace detail

template <Computed T>
void convolve(const Device& device, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y) {
  detail::multiply(device, kernel::Convolve<Stored<T>>{how, stored(x.data), stored(weight), stored(bias), stored(y.data)},
                   {how.groups, how.filters_of_group(), x.rows * how.windows(), how.depth()});
}

template <Computed T>
void convolve_backward_input(const Device& device, const Convolution& how, const T* weight, Matrix<const T> gradient_y,
                             Matrix<T> gradient_x) {
  detail::multiply(device, kernel::ConvolveBackwardInput<Stored<T>>{how, stored(weight), stored(gradient_y.data), stored(gradient_x.data)},
                   {how.groups, how.channels_of_group(), gradient_x.rows * how.positions(), how.filters_of_group() * how.kernel()});
}

template <Computed T>
void convolve_backward_weight(const Device& device, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y,
                              Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate) {
  kernel::ConvolveBackwardWeight<Stored<T>> product{how,        stored(x.data), stored(gradient_y.data), gradient_weight, gradient_bias,
                                                    accumulate, nullptr};
  const kernel::ProductSizes sizes{how.groups, how.filters_of_group(), product.columns(), x.rows * how.windows()};
  // As many slices of the depth as `partials` has room for, but no more than keep a GPU busy, and none of few windows.
  constexpr Index room = Partials::bytes / sizeof(float), most_blocks = 1024, least_depth = 256;
  const Index of_slice = how.filters * product.columns();
  const auto slices = static_cast<unsigned>(
      std::max<Index>(1, std::min({room / of_slice, most_blocks / detail::tiles_of(sizes), sizes.depth / least_depth})));
  if (slices > 1) product.of_slices = reinterpret_cast<float*>(device.state().partials().values);
  detail::multiply(device, product, sizes, slices);
  if (slices > 1) for_each_element(device, of_slice, kernel::AddConvolutionSlices<Stored<T>>{product, slices});
}

}  // namespace pdp::cuda
