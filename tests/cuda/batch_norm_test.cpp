#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/core/batch_normalisation.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "support.hpp"

namespace cuda_batch_norm_test {

namespace comm = pdp::comm;
using gpu::Copy, gpu::exact, gpu::largest, gpu::rounded, gpu::rounding, gpu::widened;
using pdp::BatchNormalisation, pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Matrix, pdp::Shape, pdp::StepNumbers;
using pdp::cpu::Cpu;

namespace {

/// Compares all parts with those of a CPU. The last value of each result is a guard, which must stay as it is.
template <class T>
void check(const pdp::cuda::Device& device, const BatchNormalisation& how, Index rows) {
  CAPTURE(rows, how.channels, how.positions);
  const Index cols = how.channels * how.positions, size = rows * cols;
  const auto x = exact<T>(size, 1, 2), gradient_y = exact<T>(size, 2), values = exact<T>(3 * how.channels, 3, 1);
  const Index channels = how.channels;
  auto variance = exact<T>(channels, 4);
  for (float& each : variance) each = each * each + 1;
  variance = widened(rounded<T>(variance));
  const float *const weight = values.data(), *const bias = weight + channels, *const mean = bias + channels;
  const Copy<T> x_there{device, rounded<T>(x)}, of_y_there{device, rounded<T>(gradient_y)}, values_there{device, rounded<T>(values)},
      variance_there{device, rounded<T>(variance)};
  const T *const weight_there = values_there.read().data(), *const bias_there = weight_there + channels,
                 *const mean_there = bias_there + channels;
  const Matrix<const float> in{x.data(), rows, cols}, of_y{gradient_y.data(), rows, cols};

  auto y = exact<T>(size + 1, 5), gradient_x = exact<T>(size + 1, 6);
  std::vector<double> sums(pdp::as_size(how.all_sums() + 1), 7);
  Copy<T> y_there{device, rounded<T>(y)}, gradient_x_there{device, rounded<T>(gradient_x)};
  Copy<double> sums_there{device, sums};
  batch_statistics(Cpu{}, how, in, mean, sums.data());
  batch_statistics(device, how, x_there.matrix(rows, cols), mean_there, sums_there.data());
  batch_gradient_sums(Cpu{}, how, in, mean, of_y, sums.data());
  batch_gradient_sums(device, how, x_there.matrix(rows, cols), mean_there, of_y_there.matrix(rows, cols), sums_there.data());
  if (rows > 0) CHECK(support::difference(sums_there.values(), sums) < 1e-5 * static_cast<double>(size));
  const auto read = [](const std::vector<double>& of) { return of.data(); };
  batch_normalise(Cpu{}, how, in, mean, read(sums), weight, bias, Matrix<float>{y.data(), rows, cols});
  batch_normalise(device, how, x_there.matrix(rows, cols), mean_there, sums_there.read().data(), weight_there, bias_there,
                  y_there.matrix(rows, cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));
  batch_normalise_backward(Cpu{}, how, in, mean, read(sums), weight, of_y, Matrix<float>{gradient_x.data(), rows, cols});
  batch_normalise_backward(device, how, x_there.matrix(rows, cols), mean_there, sums_there.read().data(), weight_there,
                           of_y_there.matrix(rows, cols), gradient_x_there.matrix(rows, cols));
  CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < rounding<T> * largest(gradient_x));

  normalise_channels(Cpu{}, how, in, mean, variance.data(), weight, bias, Matrix<float>{y.data(), rows, cols});
  normalise_channels(device, how, x_there.matrix(rows, cols), mean_there, variance_there.read().data(), weight_there, bias_there,
                     y_there.matrix(rows, cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));

  constexpr const float* zero = nullptr;
  constexpr const T* zero_there = nullptr;
  normalise_channels(Cpu{}, how, in, zero, variance.data(), weight, zero, Matrix<float>{y.data(), rows, cols});
  normalise_channels(device, how, x_there.matrix(rows, cols), zero_there, variance_there.read().data(), weight_there, zero_there,
                     y_there.matrix(rows, cols));
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));

  const StepNumbers numbers{.row_scale = 0.25};
  const Copy<StepNumbers> numbers_there{device, {numbers}};
  for (const bool accumulate : {false, true}) {
    auto gradient = support::normal(4 * channels + 1, 8);
    Copy<float> there{device, gradient};
    batch_parameter_gradients(Cpu{}, how, rows, 0.1, &numbers, mean, static_cast<const float*>(variance.data()), read(sums), channels,
                              gradient.data(), accumulate);
    batch_parameter_gradients(device, how, rows, 0.1, numbers_there.read().data(), mean_there, variance_there.read().data(),
                              sums_there.read().data(), channels, there.data(), accumulate);
    CHECK(support::difference(there.values(), gradient) < 1e-4 * largest(gradient));
  }
}

/// Trains a model with BatchNorm, of which the last batch of an epoch is divided unevenly. Returns the losses of the epochs and of an
/// evaluation.
template <class C, class S, class... Where>
std::vector<double> losses(C& world, const S& strategy, const Where&... where) {
  namespace nn = pdp::nn;
  const nn::Residual residual{nn::Sequential{nn::Linear{6, 6}, nn::BatchNorm{6}, nn::Tanh{}, nn::Linear{6, 6}, nn::BatchNorm{6}}};
  const pdp::Task task{nn::Sequential{nn::Linear{5, 6}, nn::BatchNorm{6}, nn::Tanh{}, residual, nn::Linear{6, 3}},
                       pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 44; ++i) classes.push_back(i * i % 3);
  const pdp::data::InMemory<std::int32_t> set{Shape{5}, support::normal(44 * 5, 1), classes};
  pdp::Trainer trainer{world, strategy, task, {.global_batch = 16}, where...};
  std::vector<double> found;
  trainer.fit(set, {.epochs = 3, .progress = false}, [&](const pdp::Epoch& epoch) { found.push_back(epoch.loss); });
  found.push_back(trainer.evaluate(set).mean_loss());
  return found;
}

}  // namespace

TEST_CASE("A GPU normalises batches as a CPU does", "[cuda][batch_norm]") {
  const auto device = gpu::device();
  if (!device) return;
  check<float>(*device, {.channels = 3}, 5);
  check<float>(*device, {.channels = 2, .positions = 150}, 4);  // more values than a block has threads
  check<BFloat16>(*device, {.channels = 3, .positions = 4}, 5);
  check<Float16>(*device, {.channels = 3, .positions = 4}, 5);
  check<float>(*device, {.channels = 3, .positions = 2}, 0);
}

TEST_CASE("A model with BatchNorm has the losses of a CPU on a GPU, and on several ranks of it", "[cuda][batch_norm][cuda_thread]") {
  const auto device = gpu::device();
  if (!device) return;
  pdp::comm::Self one, other;
  const auto expected = losses(one, pdp::strategy::Single{});
  CHECK(support::difference(losses(other, pdp::strategy::Single{}, *device), expected) < 1e-5);
  using comm::CudaThread;
  std::vector<CudaThread> world = CudaThread::world_on({0, 0, 0});
  std::vector<std::vector<double>> found(world.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < world.size(); ++rank)
    threads.emplace_back([&, rank] { found[rank] = losses(world[rank], pdp::strategy::DataParallel{}, pdp::cuda::Device{{.index = 0}}); });
  threads.clear();
  for (const auto& each : found) CHECK(support::difference(each, expected) < 1e-5);
}

}  // namespace cuda_batch_norm_test
