#pragma once

#include <algorithm>

#include <pdp/core/group_normalisation.hpp>
#include <pdp/cuda/kernels/sums.cuh>

namespace pdp::cuda {

namespace kernel {

/// The groups that kernels normalise (see GroupNormalisation). Group g of row r is group r * groups + g of the matrix.
struct Groups {
  Index rows, groups;
  Index channels, positions;  // of a group
  float eps;
  bool centred;

  __device__ Index count() const { return rows * groups; }
  __device__ Index values() const { return channels * positions; }
  /// Returns the number of the first channel of a group, and of the channel of value `i` of a group, counted from that.
  __device__ Index first_channel(Index group) const { return group % groups * channels; }
  __device__ Index channel(Index i) const { return positions == 1 ? i : i / positions; }
};

/// A team is a warp, or a block of block_threads threads. Returns the sum over a team, in each of its threads.
template <unsigned Team>
__device__ inline float sum_of_team(float value) {
  value = sum_of_warp(value);
  if constexpr (Team > warp_threads) {
    __shared__ float of_warps[Team / warp_threads];
    __syncthreads();  // the previous call has read of_warps
    if (threadIdx.x % warp_threads == 0) of_warps[threadIdx.x / warp_threads] = value;
    __syncthreads();
    value = 0;
    for (unsigned warp = 0; warp < Team / warp_threads; ++warp) value += of_warps[warp];
  }
  return value;
}

/// The mean and the variance of a group, as on a CPU: the mean is shift + rest.
struct GroupStatistics {
  float shift, rest, scale;
  __device__ float normalised(float x) const { return ((x - shift) - rest) * scale; }
};
template <unsigned Team, class T>
__device__ inline GroupStatistics statistics_of(const T* x, const Groups& of) {
  const Index thread = threadIdx.x % Team, count = of.values();
  const auto number = static_cast<float>(count);
  float shift = 0, sum = 0, squares = 0;
  if (of.centred) {
    for (Index i = thread; i < count; i += Team) shift += as_float(x[i]);
    shift = sum_of_team<Team>(shift) / number;
  }
  for (Index i = thread; i < count; i += Team) {
    const float apart = as_float(x[i]) - shift;
    sum += apart;
    squares += apart * apart;
  }
  const float rest = of.centred ? sum_of_team<Team>(sum) / number : 0;
  const float variance = sum_of_team<Team>(squares) / number - rest * rest;
  return {shift, rest, 1 / sqrtf((variance < 0 ? 0 : variance) + of.eps)};  // NaN stays NaN
}

/// first_group() returns the first group of a team, groups_at_once() the distance to its next one.
template <unsigned Team>
__device__ inline Index first_group() {
  return (Index{blockIdx.x} * block_threads + threadIdx.x) / Team;
}
template <unsigned Team>
__device__ inline Index groups_at_once() {
  return Index{gridDim.x} * (block_threads / Team);
}

template <unsigned Team, class T>
__global__ void __launch_bounds__(block_threads) normalise(Groups of, const T* x, const T* weight, const T* bias, T* y) {
  const Index values = of.values();
  for (Index group = first_group<Team>(); group < of.count(); group += groups_at_once<Team>()) {
    const T* const in = x + group * values;
    const GroupStatistics found = statistics_of<Team>(in, of);
    const Index first = of.first_channel(group);
    for (Index i = threadIdx.x % Team; i < values; i += Team) {
      const Index channel = first + of.channel(i);
      const float term = bias != nullptr ? as_float(bias[channel]) : 0;
      y[group * values + i] = static_cast<T>(found.normalised(as_float(in[i])) * as_float(weight[channel]) + term);
    }
  }
}

template <unsigned Team, class T>
__global__ void __launch_bounds__(block_threads)
    normalise_backward_input(Groups of, const T* x, const T* weight, const T* gradient_y, T* gradient_x) {
  const Index values = of.values();
  for (Index group = first_group<Team>(); group < of.count(); group += groups_at_once<Team>()) {
    const T *const in = x + group * values, *const gradient = gradient_y + group * values;
    const GroupStatistics found = statistics_of<Team>(in, of);
    const Index first = of.first_channel(group);
    float sum = 0, products = 0;
    for (Index i = threadIdx.x % Team; i < values; i += Team) {
      const float g = as_float(gradient[i]) * as_float(weight[first + of.channel(i)]);
      sum += g;
      products += g * found.normalised(as_float(in[i]));
    }
    const auto number = static_cast<float>(values);
    const float mean = of.centred ? sum_of_team<Team>(sum) / number : 0, slope = sum_of_team<Team>(products) / number;
    for (Index i = threadIdx.x % Team; i < values; i += Team) {
      const float g = as_float(gradient[i]) * as_float(weight[first + of.channel(i)]);
      gradient_x[group * values + i] = static_cast<T>((g - mean - found.normalised(as_float(in[i])) * slope) * found.scale);
    }
  }
}

/// The gradients of weights and biases, for all channels or for those of a slice of the rows. `bias` may be null.
struct ChannelGradients {
  float *weight, *bias;
};

/// The rows are divided into `slices` slices. A block takes a group in the rows of a slice, some rows at a time: its warps compute their
/// statistics, then each channel is added up by `Lanes` threads, either 1 or a warp. With one slice, writes to `gradients`; with several,
/// each slice has gradients of its own in `of_slices`.
constexpr unsigned statistics_at_once = 32;
template <unsigned Lanes, class T>
__global__ void __launch_bounds__(block_threads)
    normalise_backward_weight(Groups of, const T* x, const T* gradient_y, ChannelGradients gradients, bool accumulate, unsigned slices,
                              float* of_slices) {
  __shared__ GroupStatistics statistics[statistics_at_once];
  const Index slice = blockIdx.x / of.groups, group = blockIdx.x % of.groups, of_slice = (of.rows + slices - 1) / slices;
  const Index begin = slice * of_slice, end = begin + of_slice < of.rows ? begin + of_slice : of.rows;
  const Index all_channels = of.groups * of.channels, values = of.values();
  if (slices > 1) {
    gradients.weight = of_slices + slice * 2 * all_channels;
    if (gradients.bias != nullptr) gradients.bias = gradients.weight + all_channels;
  }
  bool adds = accumulate && slices == 1;
  Index row = begin;
  do {
    const Index rows = row + statistics_at_once < end ? statistics_at_once : end - row;
    __syncthreads();  // the statistics of the rows before have been read
    for (Index each = threadIdx.x / warp_threads; each < rows; each += block_threads / warp_threads) {
      const GroupStatistics found = statistics_of<warp_threads>(x + ((row + each) * of.groups + group) * values, of);
      if (threadIdx.x % warp_threads == 0) statistics[each] = found;
    }
    __syncthreads();
    for (Index channel = threadIdx.x / Lanes; channel < of.channels; channel += block_threads / Lanes) {
      float of_weight = 0, of_bias = 0;
      for (Index each = 0; each < rows; ++each) {
        const Index first = ((row + each) * of.groups + group) * values + channel * of.positions;
        for (Index i = first + threadIdx.x % Lanes; i < first + of.positions; i += Lanes) {
          const float g = as_float(gradient_y[i]);
          of_weight += g * statistics[each].normalised(as_float(x[i]));
          of_bias += g;
        }
      }
      if constexpr (Lanes > 1) {
        of_weight = sum_of_warp(of_weight);
        of_bias = sum_of_warp(of_bias);
      }
      if (threadIdx.x % Lanes > 0) continue;
      const Index to = group * of.channels + channel;
      gradients.weight[to] = (adds ? gradients.weight[to] : 0) + of_weight;
      if (gradients.bias != nullptr) gradients.bias[to] = (adds ? gradients.bias[to] : 0) + of_bias;
    }
    adds = true;
    row += statistics_at_once;
  } while (row < end);
}

/// Adds the gradients of the slices, in their order.
struct AddSlices {
  const float* of_slices;
  Index channels;
  unsigned slices;
  ChannelGradients gradients;
  bool accumulate;
  __device__ void operator()(Index i) const {
    float* const to = i < channels ? gradients.weight + i : gradients.bias + (i - channels);
    float sum = accumulate ? *to : 0;
    for (unsigned slice = 0; slice < slices; ++slice) sum += of_slices[slice * 2 * channels + i];
    *to = sum;
  }
};

}  // namespace kernel

namespace detail {

inline kernel::Groups groups_of(const GroupNormalisation& how, Index rows, Index columns) {
  return {rows, how.groups, how.channels_of_group(), how.positions(columns), static_cast<float>(how.eps), how.centred};
}

/// Launches a kernel of teams, for warps or for blocks. `warps` and `blocks`: the kernel for each.
template <class Kernel, class... Arguments>
void launch_teams(const Device& device, Kernel* warps, Kernel* blocks, const kernel::Groups& of, const Arguments&... arguments) {
  constexpr Index most_values_of_warp = 2048;
  constexpr unsigned most_blocks = 8 * 1024;
  const Index count = of.rows * of.groups;
  if (count == 0) return;
  if (of.channels * of.positions <= most_values_of_warp)
    launch(device, warps, blocks_for(count, block_threads / warp_threads, most_blocks), block_threads, of, arguments...);
  else
    launch(device, blocks, blocks_for(count, 1, most_blocks), block_threads, of, arguments...);
}

}  // namespace detail

template <Computed T>
void normalise(const Device& device, const GroupNormalisation& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y) {
  using V = Stored<T>;
  detail::launch_teams(device, kernel::normalise<warp_threads, V>, kernel::normalise<block_threads, V>,
                       detail::groups_of(how, x.rows, x.cols), stored(x.data), stored(weight), stored(bias), stored(y.data));
}

template <Computed T>
void normalise_backward_input(const Device& device, const GroupNormalisation& how, Matrix<const T> x, const T* weight,
                              Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  using V = Stored<T>;
  detail::launch_teams(device, kernel::normalise_backward_input<warp_threads, V>, kernel::normalise_backward_input<block_threads, V>,
                       detail::groups_of(how, x.rows, x.cols), stored(x.data), stored(weight), stored(gradient_y.data),
                       stored(gradient_x.data));
}

template <Computed T>
void normalise_backward_weight(const Device& device, const GroupNormalisation& how, Matrix<const T> x, Matrix<const T> gradient_y,
                               Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate) {
  const kernel::Groups of = detail::groups_of(how, x.rows, x.cols);
  const kernel::ChannelGradients gradients{gradient_weight, gradient_bias};
  // As many slices as `partials` has room for, each with a row for each warp of a block.
  constexpr Index room = Partials::bytes / sizeof(float), least_rows = block_threads / warp_threads;
  const auto slices = static_cast<unsigned>(std::max<Index>(1, std::min(room / (2 * how.channels), x.rows / least_rows)));
  const Partials& partials = device.state().partials();
  const auto of_channels =
      of.positions == 1 ? kernel::normalise_backward_weight<1, Stored<T>> : kernel::normalise_backward_weight<warp_threads, Stored<T>>;
  float* const of_slices = reinterpret_cast<float*>(partials.values);
  launch(device, of_channels, slices * static_cast<unsigned>(how.groups), block_threads, of, stored(x.data), stored(gradient_y.data),
         gradients, accumulate, slices, of_slices);
  if (slices > 1)
    for_each_element(device, how.channels * (gradient_bias != nullptr ? 2 : 1),
                     kernel::AddSlices{of_slices, how.channels, slices, gradients, accumulate});
}

}  // namespace pdp::cuda
