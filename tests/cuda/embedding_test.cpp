#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/tied_output.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "support.hpp"

namespace cuda_embedding_test {

using gpu::Copy, gpu::exact, gpu::largest, gpu::rounded, gpu::rounding, gpu::widened;
using pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Matrix, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

std::vector<std::int32_t> tokens(Index count, Index vocabulary) {
  std::vector<std::int32_t> all;
  for (Index i = 0; i < count; ++i) all.push_back(static_cast<std::int32_t>(i * i * 7 % vocabulary));
  return all;
}

constexpr pdp::Task task{pdp::nn::Sequential{pdp::nn::Embedding{13, 8}, pdp::nn::LearnedPositions{6, 8}, pdp::nn::SinusoidalPositions{6, 8},
                                             pdp::nn::Linear{8, 8}, pdp::nn::TiedOutput{13, 8}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
const pdp::TrainerOptions options{.global_batch = 16, .input = Shape{5}};

pdp::data::InMemory<std::int32_t, std::int32_t> samples() { return {Shape{5}, tokens(5 * 40, 13), tokens(5 * 40, 11), Shape{5}}; }
/// Returns the losses of a training on one rank.
std::vector<double> losses(const auto&... device) {
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, task, options, device...};
  std::vector<double> found;
  trainer.fit(samples(), {.epochs = 3}, [&](const pdp::Epoch& epoch) { found.push_back(epoch.loss); });
  return found;
}

/// Compares both operations with those of a CPU. The last value of each result is a guard, which must stay as it is.
template <class T>
void check(const pdp::cuda::Device& device, Index count, Index vocabulary, Index width, Index first = 0, Index all = 0) {
  CAPTURE(count, vocabulary, width, first, all);
  const pdp::TokenRows rows{first, all == 0 ? vocabulary : all};
  const auto which = tokens(count, rows.vocabulary);
  const auto weight = exact<T>(vocabulary * width, 1), gradient_y = exact<T>(count * width, 2);
  const Copy<std::int32_t> which_there{device, which};
  const Copy<T> weight_there{device, rounded<T>(weight)}, gradient_there{device, rounded<T>(gradient_y)};
  auto y = exact<T>(count * width + 1, 3);
  Copy<T> y_there{device, rounded<T>(y)};
  embed(Cpu{}, Matrix<const std::int32_t>{which.data(), 1, count}, rows, Matrix<const float>{weight.data(), vocabulary, width},
        Matrix<float>{y.data(), 1, count * width});
  embed(device, which_there.matrix(1, count), rows, weight_there.matrix(vocabulary, width), y_there.matrix(1, count * width));
  CHECK(widened(y_there.values()) == y);
  for (const bool accumulate : {false, true}) {
    auto gradient = support::normal(vocabulary * width + 1, 4);
    Copy<float> there{device, gradient};
    embed_backward(Cpu{}, Matrix<const std::int32_t>{which.data(), 1, count}, rows,
                   Matrix<const float>{gradient_y.data(), 1, count * width}, Matrix<float>{gradient.data(), vocabulary, width}, accumulate);
    embed_backward(device, which_there.matrix(1, count), rows, gradient_there.matrix(1, count * width), there.matrix(vocabulary, width),
                   accumulate);
    CHECK(there.values() == gradient);  // the rows are added in the same order
  }
}

}  // namespace

TEST_CASE("A GPU embeds tokens as a CPU does", "[cuda][embedding]") {
  const auto device = gpu::device();
  if (!device) return;
  check<float>(*device, 1, 1, 1);
  check<float>(*device, 700, 13, 300);  // more tokens than a block looks at together, and more columns than it has threads
  check<BFloat16>(*device, 37, 5, 7);
  check<Float16>(*device, 37, 5, 7);
  check<float>(*device, 0, 3, 4);
  check<float>(*device, 90, 4, 7, 8, 12);  // a part of a table
}

TEST_CASE("A token without a row becomes NaN on a GPU", "[cuda][embedding]") {
  const auto device = gpu::device();
  if (!device) return;
  const Copy<std::int32_t> which{*device, {1, 3, -1, 0}};
  const Copy<float> weight{*device, {1, 2, 3}}, gradient_y{*device, {1, 1, 1, 1}};
  Copy<float> y{*device, {0, 0, 0, 0}}, gradient{*device, {0, 0, 0}};
  embed(*device, which.matrix(1, 4), {0, 3}, weight.matrix(3, 1), y.matrix(1, 4));
  const std::vector<float> found = y.values();
  CHECK(found[0] == 2);
  CHECK(std::isnan(found[1]));
  CHECK(std::isnan(found[2]));
  CHECK(found[3] == 1);
  embed_backward(*device, which.matrix(1, 4), {0, 3}, gradient_y.matrix(1, 4), gradient.matrix(3, 1), false);
  CHECK(gradient.values() == std::vector<float>{1, 1, 0});
}

TEST_CASE("A model of tokens has the losses of a CPU on a GPU", "[cuda][embedding]") {
  const auto device = gpu::device();
  if (!device) return;
  CHECK(support::difference(losses(*device), losses()) < 1e-5);
}

TEST_CASE("Both copies of a tied parameter stay equal on GPU ranks in 16 bits", "[cuda][embedding]") {
  if (!gpu::device()) return;
  using pdp::comm::CudaThread;
  namespace strategy = pdp::strategy;
  const std::vector<double> expected = losses();
  for (const strategy::AnyStrategy& way :
       {strategy::AnyStrategy{strategy::DataParallel{}}, strategy::AnyStrategy{strategy::Zero{.stage = 2}},
        strategy::AnyStrategy{strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}}}) {
    std::vector<CudaThread> world = CudaThread::world_on({0, 0});
    std::vector<std::vector<double>> found(2);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        pdp::Trainer trainer{world[rank], way, task, options, pdp::cuda::Device{{.index = 0}}, pdp::MixedBfloat16{}};
        trainer.fit(samples(), {.epochs = 3}, [&](const pdp::Epoch& epoch) { found[rank].push_back(epoch.loss); });
        trainer.check_parameters();
      });
    threads.clear();
    CHECK(support::difference(found[0], expected) < 0.03);
    CHECK(found[0] == found[1]);
  }
}

}  // namespace cuda_embedding_test
