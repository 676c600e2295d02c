#include <pdp/comm/thread.hpp>
#include <pdp/data/mnist.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "train/parity.hpp"
#include "train/ways.hpp"

/// Convolutional networks, as PyTorch trains them; see tests/parity/make_images.py.
namespace images_test {

using pdp::Shape, pdp::comm::Thread;

namespace {

auto lenet() {
  using namespace pdp::nn;
  return Sequential{Conv2d{1, 6, 5, {.padding = 2}},
                    Relu{},
                    MaxPool2d{2},
                    Conv2d{6, 16, 5},
                    Relu{},
                    MaxPool2d{2},
                    Flatten{},
                    Linear{400, 120},
                    Relu{},
                    Linear{120, 84},
                    Relu{},
                    Linear{84, 10}};
}

auto residual() {
  using namespace pdp::nn;
  const auto convolution = [](pdp::Index in, pdp::Index out, pdp::Index stride) {
    return Conv2d{in, out, 3, {.stride = stride, .padding = 1, .bias = false}};
  };
  const auto block = [&](pdp::Index channels) {
    return Residual{Sequential{convolution(channels, channels, 1), GroupNorm{4, channels}, Tanh{}, convolution(channels, channels, 1),
                               GroupNorm{4, channels}}};
  };
  const Sum wider{Sequential{convolution(16, 32, 2), GroupNorm{4, 32}}, Conv2d{16, 32, 1, {.stride = 2}}};
  return Sequential{Conv2d{1, 16, 3, {.stride = 2, .padding = 1}},
                    Tanh{},
                    block(16),
                    Tanh{},
                    wider,
                    Tanh{},
                    block(32),
                    AvgPool2d{3, {.stride = 2, .padding = 1}},
                    AdaptiveAvgPool2d{2},
                    Flatten{},
                    Linear{128, 10}};
}

auto resnet() {
  using namespace pdp::nn;
  const auto block = [](pdp::Index in, pdp::Index out, pdp::Index stride) {
    return Sequential{Conv2d{in, out, 3, {.stride = stride, .padding = 1, .bias = false}}, BatchNorm{out}, Relu{},
                      Conv2d{out, out, 3, {.padding = 1, .bias = false}}, BatchNorm{out}};
  };
  const auto wider = [&](pdp::Index in, pdp::Index out) {
    return Sum{block(in, out, 2), Conv2d{in, out, 1, {.stride = 2, .bias = false}}};
  };
  return Sequential{Conv2d{1, 4, 3, {.stride = 2, .padding = 1, .bias = false}},
                    BatchNorm{4},
                    Relu{},
                    Residual{block(4, 4, 1)},
                    Relu{},
                    wider(4, 8),
                    Relu{},
                    wider(8, 8),
                    Relu{},
                    AdaptiveAvgPool2d{1},
                    Flatten{},
                    Linear{8, 10}};
}

/// Returns the losses of steps with the first digits, in their order.
template <class Model>
std::vector<double> losses(const Model& model, const pdp::strategy::AnyStrategy& strategy, int ranks, float rate) {
  constexpr pdp::Index batch = 32, steps = parity::steps;
  const pdp::data::Mnist digits{PDP_TEST_DATA "/mnist"};
  return pdp::testing::ranks<Thread>(ranks,
                                     [&](Thread& world) {
                                       const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = rate}};
                                       pdp::Trainer trainer{world, strategy, task, {.global_batch = batch, .input = Shape{1, 28, 28}}};
                                       trainer.set_parameters(parity::initial_parameters(model), "the formula");
                                       std::vector<double> found;
                                       trainer.fit(
                                           digits.train().part(0, batch * steps), {.epochs = 1, .shuffle = false, .progress = false},
                                           [](const pdp::Epoch&) {},
                                           [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
                                       return found;
                                     })
      .front();
}

template <class Model>
void check(const std::string& name, const Model& model, const pdp::strategy::AnyStrategy& strategy, int ranks, float rate = 0.01f) {
  parity::check_losses(losses(model, strategy, ranks, rate), name);
}

}  // namespace

TEST_CASE("LeNet and a residual network have PyTorch's losses for 100 steps under every strategy", "[train][parity]") {
  for (const auto& way : ways_test::ways()) {
    if (way.ranks == 3 || (PDP_TEST_SANITIZED && way.name != "pipeline")) continue;  // convolutions are slow
    INFO(way.name << " on " << way.ranks << " ranks");
    check("lenet", lenet(), way.strategy, way.ranks);
    check("residual", residual(), way.strategy, way.ranks);
  }
  check("lenet", lenet(), pdp::strategy::Single{}, 1);
  check("residual", residual(), pdp::strategy::Single{}, 1);
}

TEST_CASE("A residual network with BatchNorm has PyTorch's losses for 100 steps under every strategy", "[train][parity]") {
  using Schedule = pdp::strategy::OneForwardOneBackward;
  check("resnet", resnet(), pdp::strategy::Single{}, 1, 0.001f);
  check("resnet", resnet(), pdp::strategy::DataParallel{}, 2, 0.001f);
  if (PDP_TEST_SANITIZED) return;
  for (const int stage : {1, 2, 3}) check("resnet", resnet(), pdp::strategy::Zero{.stage = stage}, 2, 0.001f);
  check("resnet", resnet(), pdp::strategy::Pipeline<Schedule>{.micro_batches = 1}, 2, 0.001f);
  check("resnet", resnet(), pdp::strategy::TensorParallel{}, 2, 0.001f);
  check("resnet", resnet(), pdp::strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 1}, 4, 0.001f);
}

}  // namespace images_test
