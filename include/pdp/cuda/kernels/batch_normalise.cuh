#pragma once

#include <pdp/core/batch_normalisation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cuda/kernels/rows.cuh>
#include <pdp/cuda/operations.hpp>

/// Batch normalisation. A block adds up a channel; so sums have one order.
namespace pdp::cuda {

namespace kernel {

template <class T>
__device__ inline ChannelStatistics statistics_of(const BatchNormalisation& how, const double* sums, const T* shift, Index channel) {
  return {how, sums, static_cast<double>(as_float(shift[channel])), channel};
}
__device__ inline double scale_of(double variance, const BatchNormalisation& how) { return 1 / sqrt(variance + how.eps); }

/// Writes two sums of each channel over the values of all rows, whose terms are term(index, first, second).
template <class Term>
__device__ inline void channel_sums(const BatchNormalisation& how, Index rows, double* sums, const Term& term) {
  const Index channel = blockIdx.x;
  double first = 0, second = 0;
  for (Index i = threadIdx.x; i < rows * how.positions; i += block_threads)
    term((i / how.positions * how.channels + channel) * how.positions + i % how.positions, first, second);
  first = sum_of_block(first);
  second = sum_of_block(second);
  if (threadIdx.x != 0) return;
  sums[channel] = first;
  sums[how.channels + channel] = second;
}

template <class T>
__global__ void __launch_bounds__(block_threads) batch_sums(BatchNormalisation how, Index rows, const T* x, const T* shift, double* sums) {
  const float less = as_float(shift[blockIdx.x]);
  if (blockIdx.x == 0 && threadIdx.x == 0) sums[0] = static_cast<double>(rows * how.positions);
  channel_sums(how, rows, sums + 1, [=](Index at, double& first, double& second) {
    const double apart = static_cast<double>(as_float(x[at]) - less);
    first += apart;
    second += apart * apart;
  });
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    batch_gradient_sums(BatchNormalisation how, Index rows, const T* x, const T* shift, const T* gradient_y, double* sums) {
  const Index channel = blockIdx.x;
  const ChannelStatistics of = statistics_of(how, sums, shift, channel);
  const auto mean = static_cast<float>(of.mean);
  double *const all = sums + how.forward_sums(), *const own = all + how.backward_sums();
  channel_sums(how, rows, all, [=](Index at, double& first, double& second) {
    const float gradient = as_float(gradient_y[at]);
    first += static_cast<double>(gradient);
    second += static_cast<double>(gradient * (as_float(x[at]) - mean));
  });
  if (threadIdx.x != 0) return;
  if (rows > 0) all[how.channels + channel] *= scale_of(of.variance, how);
  own[channel] = all[channel];
  own[how.channels + channel] = all[how.channels + channel];
}

template <class T>
struct BatchNormalise {
  BatchNormalisation how;
  const T *x, *shift, *weight, *bias;
  const double* sums;
  T* y;
  __device__ void operator()(Index i) const {
    const Index channel = i / how.positions % how.channels;
    const ChannelStatistics of = statistics_of(how, sums, shift, channel);
    const auto slope = static_cast<float>(scale_of(of.variance, how) * static_cast<double>(as_float(weight[channel])));
    y[i] = static_cast<T>((as_float(x[i]) - static_cast<float>(of.mean)) * slope + as_float(bias[channel]));
  }
};
template <class T>
struct NormaliseChannels {
  BatchNormalisation how;
  const T *x, *mean, *variance, *weight, *bias;
  T* y;
  __device__ void operator()(Index i) const {
    const Index channel = i / how.positions % how.channels;
    const double scale = scale_of(static_cast<double>(as_float(variance[channel])), how);
    const auto slope = static_cast<float>(scale * static_cast<double>(as_float(weight[channel])));
    const float from = mean == nullptr ? 0 : as_float(mean[channel]), to = bias == nullptr ? 0 : as_float(bias[channel]);
    y[i] = static_cast<T>((as_float(x[i]) - from) * slope + to);
  }
};
template <class T>
struct BatchNormaliseBackward {
  BatchNormalisation how;
  const T *x, *shift, *weight, *gradient_y;
  const double* sums;
  T* gradient_x;
  __device__ void operator()(Index i) const {
    const Index channel = i / how.positions % how.channels;
    const ChannelStatistics of = statistics_of(how, sums, shift, channel);
    const double* const all = sums + how.forward_sums();
    const double scale = scale_of(of.variance, how), factor = scale * static_cast<double>(as_float(weight[channel]));
    const auto apart = static_cast<double>(as_float(x[i]) - static_cast<float>(of.mean));
    const double mean_of_gradient = (all[channel] + apart * scale * all[how.channels + channel]) / of.count;
    gradient_x[i] = static_cast<T>(static_cast<float>(factor * (static_cast<double>(as_float(gradient_y[i])) - mean_of_gradient)));
  }
};
template <class T>
struct BatchParameterGradients {
  BatchNormalisation how;
  Index rows, block;
  double momentum;
  const StepNumbers* numbers;
  const T *mean, *variance;
  const double* sums;
  float* gradient;
  bool accumulate;
  __device__ void put(Index number, Index channel, double value) const {
    float& to = gradient[number * block + channel];
    to = (accumulate ? to : 0) + static_cast<float>(value);
  }
  __device__ void operator()(Index channel) const {
    const double* const own = sums + how.forward_sums() + how.backward_sums();
    const ChannelStatistics of = statistics_of(how, sums, mean, channel);
    const double part = static_cast<double>(rows) * numbers->row_scale * momentum;
    put(0, channel, own[how.channels + channel]);
    put(1, channel, own[channel]);
    put(2, channel, rows == 0 ? 0 : part * (of.mean - static_cast<double>(as_float(mean[channel]))));
    put(3, channel, rows == 0 ? 0 : part * (of.unbiased() - static_cast<double>(as_float(variance[channel]))));
  }
};

}  // namespace kernel

template <Computed T>
void batch_statistics(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, double* sums) {
  launch(device, kernel::batch_sums<Stored<T>>, static_cast<unsigned>(how.channels), block_threads, how, x.rows, stored(x.data),
         stored(shift), sums);
}
template <Computed T>
void batch_normalise(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                     const T* weight, const T* bias, Matrix<T> y) {
  for_each_element(
      device, stored(y).size(),
      kernel::BatchNormalise<Stored<T>>{how, stored(x.data), stored(shift), stored(weight), stored(bias), sums, stored(y.data)});
}
template <Computed T>
void normalise_channels(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* mean, const T* variance,
                        const T* weight, const T* bias, Matrix<T> y) {
  for_each_element(device, stored(y).size(),
                   kernel::NormaliseChannels<Stored<T>>{how, stored(x.data), stored(mean), stored(variance), stored(weight), stored(bias),
                                                        stored(y.data)});
}
template <Computed T>
void batch_gradient_sums(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, Matrix<const T> gradient_y,
                         double* sums) {
  launch(device, kernel::batch_gradient_sums<Stored<T>>, static_cast<unsigned>(how.channels), block_threads, how, x.rows, stored(x.data),
         stored(shift), stored(gradient_y.data), sums);
}
template <Computed T>
void batch_normalise_backward(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                              const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  for_each_element(device, stored(gradient_x).size(),
                   kernel::BatchNormaliseBackward<Stored<T>>{how, stored(x.data), stored(shift), stored(weight), stored(gradient_y.data),
                                                             sums, stored(gradient_x.data)});
}
template <Computed T>
void batch_parameter_gradients(const Device& device, const BatchNormalisation& how, Index rows, double momentum, const StepNumbers* numbers,
                               const T* mean, const T* variance, const double* sums, Index block, Accumulated<T>* gradient,
                               bool accumulate) {
  for_each_element(device, how.channels,
                   kernel::BatchParameterGradients<Stored<T>>{how, rows, block, momentum, numbers, stored(mean), stored(variance), sums,
                                                              gradient, accumulate});
}

}  // namespace pdp::cuda
