#include <pdp/comm/self.hpp>
#include <pdp/core/attention.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "numbers.hpp"
#include "support.hpp"

namespace cuda_attention_test {

using gpu::Copy, gpu::exact, gpu::largest, gpu::rounded, gpu::rounding, gpu::widened;
using pdp::Attention, pdp::BFloat16, pdp::Float16, pdp::Index, pdp::Matrix, pdp::Rotation, pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Compares the operations with those of a CPU. The last value of each result is a guard, which must stay as it is.
template <class T>
void check(const pdp::cuda::Device& device, const Attention& how, Index rows) {
  CAPTURE(rows, how.positions, how.heads, how.key_heads, how.width, how.causal);
  const Index x_cols = how.positions * how.row(), y_cols = how.positions * how.out();
  const auto x = exact<T>(rows * x_cols, 1), gradient_y = exact<T>(rows * y_cols, 2);
  auto y = exact<T>(rows * y_cols + 1, 3), gradient_x = exact<T>(rows * x_cols + 1, 4);
  std::vector<float> sums(pdp::as_size(rows * how.positions * how.heads * pdp::attention_sums));
  const Copy<T> x_there{device, rounded<T>(x)}, gradient_y_there{device, rounded<T>(gradient_y)};
  Copy<T> y_there{device, rounded<T>(y)}, gradient_x_there{device, rounded<T>(gradient_x)}, sums_there{device, rounded<T>(sums)};

  attend(Cpu{}, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<float>{y.data(), rows, y_cols}, sums.data());
  attend(device, how, x_there.matrix(rows, x_cols), y_there.matrix(rows, y_cols), sums_there.data());
  CHECK(support::difference(widened(y_there.values()), y) < rounding<T> * largest(y));
  const std::vector<float> found_sums = widened(sums_there.values());
  for (std::size_t i = 0; i < sums.size(); i += pdp::as_size(pdp::attention_sums))
    REQUIRE(found_sums[i] + found_sums[i + 1] == Approx(sums[i]).epsilon(1e-4).margin(1e-4));  // in two numbers, 16 bits are enough

  attend_backward(Cpu{}, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<const float>{y.data(), rows, y_cols},
                  Matrix<const float>{gradient_y.data(), rows, y_cols}, static_cast<const float*>(sums.data()),
                  Matrix<float>{gradient_x.data(), rows, x_cols});
  const Copy<T>& read_y = y_there;
  attend_backward(device, how, x_there.matrix(rows, x_cols), read_y.matrix(rows, y_cols), gradient_y_there.matrix(rows, y_cols),
                  sums_there.read().data(), gradient_x_there.matrix(rows, x_cols));
  CHECK(support::difference(widened(gradient_x_there.values()), gradient_x) < 2 * rounding<T> * largest(gradient_x));

  for (const bool backward : {false, true}) {
    auto turned = exact<T>(rows * x_cols + 1, 5);
    Copy<T> there{device, rounded<T>(turned)};
    const Rotation rotation{.base = 100, .backward = backward};
    rotate(Cpu{}, how, rotation, Matrix<float>{turned.data(), rows, x_cols});
    rotate(device, how, rotation, there.matrix(rows, x_cols));
    CHECK(support::difference(widened(there.values()), turned) < rounding<T> * largest(turned));
  }
}

}  // namespace

TEST_CASE("A GPU attends as a CPU does", "[cuda][attention]") {
  const auto device = gpu::device();
  if (!device) return;
  for (const bool causal : {false, true}) {
    check<float>(*device, {1, 1, 1, 2, causal}, 1);
    check<float>(*device, {5, 4, 2, 6, causal}, 2);
    check<float>(*device, {40, 2, 1, 4, causal}, 1);   // more positions than a warp has lanes
    check<float>(*device, {3, 1, 1, 150, causal}, 1);  // more values than a warp adds up at once
    check<BFloat16>(*device, {6, 2, 2, 8, causal}, 1);
    check<Float16>(*device, {6, 2, 1, 8, causal}, 1);
  }
  check<float>(*device, {3, 2, 2, 4, true}, 0);
}

TEST_CASE("A transformer has the losses of a CPU on a GPU", "[cuda][attention]") {
  const auto device = gpu::device();
  if (!device) return;
  namespace nn = pdp::nn;
  const auto attention = nn::MultiHeadAttention{8, 2, {.causal = true, .key_heads = 1, .rotary = 100}};
  const pdp::Task task{nn::Sequential{nn::Embedding{13, 8}, nn::Residual{nn::Sequential{nn::LayerNorm{8}, attention}}, nn::Linear{8, 13}},
                       pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  std::vector<std::int32_t> x, y;
  for (int i = 0; i < 5 * 16; ++i) x.push_back(i * i * 7 % 13), y.push_back(i * i * 7 % 11);
  const pdp::data::InMemory<std::int32_t, std::int32_t> set{Shape{5}, x, y, Shape{5}};
  const auto losses = [&](auto&&... where) {
    pdp::comm::Self self;
    pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 8, .input = Shape{5}}, where...};
    std::vector<double> found;
    trainer.fit(set, {.epochs = 3}, [&](const pdp::Epoch& epoch) { found.push_back(epoch.loss); });
    return found;
  };
  CHECK(support::difference(losses(*device), losses()) < 1e-5);
}

}  // namespace cuda_attention_test
