// Measures how long a training step takes with LibTorch, the C++ front end of PyTorch. Models, losses, optimizers, batches, statistic and
// output are those of `torch_step.py step` on one rank. run_step compiles and starts it.
//
//   libtorch_step toy|mnist|ae|wide STEPS WARM_UP
//
// Uses one thread, on the first core that it may use. The first WARM_UP steps are not timed.

#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/timing.hpp"

namespace {

using torch::Tensor;

enum class Activation { none, relu, tanh };

struct Config {
  std::vector<std::int64_t> widths;
  Activation activation;
  bool bias;
  std::int64_t rows;
  bool adam, squared_error;
  double lr;
};

const std::map<std::string, Config> configs{
    {"toy", {{1024, 256, 256, 256, 32}, Activation::tanh, false, 64, false, false, 0.1}},
    {"mnist", {{784, 64, 64, 64, 10}, Activation::relu, true, 128, true, false, 1e-3}},
    {"ae", {{784, 128, 28, 128, 784}, Activation::none, true, 64, true, true, 1e-3}},
    {"wide", {{1024, 2048, 2048, 2048, 1000}, Activation::relu, true, 128, false, false, 0.01}},
};

torch::nn::Sequential model_of(const Config& config) {
  torch::nn::Sequential model;
  for (std::size_t i = 1; i < config.widths.size(); ++i) {
    model->push_back(torch::nn::Linear{torch::nn::LinearOptions{config.widths[i - 1], config.widths[i]}.bias(config.bias)});
    if (i + 1 == config.widths.size()) break;
    if (config.activation == Activation::relu) model->push_back(torch::nn::ReLU{});
    if (config.activation == Activation::tanh) model->push_back(torch::nn::Tanh{});
  }
  return model;
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Config& config, torch::nn::Sequential& model) {
  if (config.adam) return std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions{config.lr});
  return std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions{config.lr});
}

/// Returns the median time of a step in microseconds.
double measure(const Config& config, int steps, int warm_up) {
  constexpr int pool = 16;  // different batches, so that no step finds its input in the cache by chance
  auto model = model_of(config);
  const auto optimizer = optimizer_of(config, model);
  std::vector<Tensor> inputs, targets;
  for (int b = 0; b < pool; ++b) {
    inputs.push_back(torch::rand({config.rows, config.widths.front()}));
    targets.push_back(config.squared_error ? inputs.back() : torch::randint(config.widths.back(), {config.rows}, torch::kInt64));
  }
  const auto step = [&](int number) {
    const Tensor &x = inputs[number % pool], &y = targets[number % pool];
    optimizer->zero_grad();
    const Tensor out = model->forward(x);
    const Tensor loss = config.squared_error ? torch::mse_loss(out, y) : torch::cross_entropy_loss(out, y);
    loss.backward();
    optimizer->step();
  };
  for (int i = 0; i < warm_up; ++i) step(i);
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    const double begin = bench::now_us();
    step(i);
    times.push_back(bench::now_us() - begin);
  }
  return bench::median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const auto config = configs.find(argc == 4 ? argv[1] : "");
  const int steps = argc == 4 ? std::atoi(argv[2]) : 0, warm_up = argc == 4 ? std::atoi(argv[3]) : 0;
  if (config == configs.end() || steps < 1 || warm_up < 0) {
    std::fprintf(stderr, "usage: libtorch_step toy|mnist|ae|wide STEPS WARM_UP\n");
    return 2;
  }
  bench::pin(0, 1);
  torch::set_num_threads(1);
  torch::manual_seed(0);
  const double median_us = measure(config->second, steps, warm_up);
  std::printf(
      "{\"peer\": \"libtorch\", \"version\": \"%s\", \"mode\": \"step\", \"config\": \"%s\", \"world\": 1, \"threads\": 1, \"steps\": %d, "
      "\"warm_up\": %d, \"median_us\": %.3f, \"samples_per_s\": %.0f}\n",
      TORCH_VERSION, config->first.c_str(), steps, warm_up, median_us, static_cast<double>(config->second.rows) * 1e6 / median_us);
}
