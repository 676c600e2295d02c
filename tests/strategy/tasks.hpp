#pragma once

#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/task.hpp>

/// Small tasks with 8 inputs and 4 classes, and samples to learn from.
namespace tasks {

inline constexpr pdp::Task classifier{pdp::nn::Sequential{pdp::nn::Linear{8, 24}, pdp::nn::Tanh{}, pdp::nn::Linear{24, 4}},
                                      pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};

inline auto residual_classifier(pdp::Index depth) {
  using namespace pdp::nn;
  return pdp::Task{Sequential{Linear{8, 16}, Repeat{depth, Residual{Sequential{Linear{16, 16}, Relu{}}}}, Linear{16, 4}},
                   pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 3e-3f}};
}

/// Returns the class of each sample of 8 values: the index of the largest of the first four. The other values are noise.
inline std::vector<std::int32_t> classes_of(const std::vector<float>& x) {
  std::vector<std::int32_t> classes;
  for (auto row = x.begin(); row != x.end(); row += 8) classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + 4) - row));
  return classes;
}
inline pdp::data::InMemory<std::int32_t> samples(std::size_t count) {
  const std::vector<float> x = pdp::testing::normal(count * 8, 42);
  return {pdp::Shape{8}, x, classes_of(x)};
}

}  // namespace tasks
