// Models that PyTorch has trained, too; see tests/parity.
#pragma once

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace parity {

/// How many of PyTorch's losses are compared. A sanitizer sees the same code in each step.
constexpr std::size_t steps = PDP_TEST_SANITIZED ? 10 : 100;

/// Returns the losses that PyTorch has recorded.
inline std::vector<double> losses_of_torch(const std::string& model) {
  std::ifstream file{std::string{PDP_TEST_PARITY} + "/" + model + "_losses.csv"};
  std::vector<double> found;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) found.push_back(std::stod(line.substr(line.find(',') + 1)));
  return found;
}

/// Returns the initial parameters of set_parameters() in tests/parity/make_images.py.
template <class Model>
std::vector<pdp::checkpoint::Tensor> initial_parameters(const Model& model) {
  std::vector<pdp::checkpoint::Tensor> tensors;
  double inputs = 1;
  int number = 0;  // of a tensor that is trained
  pdp::nn::for_each_leaf(model, {}, [&](const auto& layer, const pdp::nn::Path& at) {
    layer.parameters(at, 0, [&](const pdp::nn::Parameter& parameter) {
      pdp::checkpoint::Tensor tensor{parameter.full_name(), parameter.file_shape(), {}, {}};
      if (tensor.shape.size() > 1) inputs = static_cast<double>(parameter.file_elements() / tensor.shape.front());
      const bool is_scale = tensor.name.ends_with("weight") && tensor.shape.size() == 1;
      if (parameter.is_buffer) {
        tensor.values.assign(static_cast<std::size_t>(parameter.file_elements()), tensor.name.ends_with("running_var") ? 1 : 0);
        return tensors.push_back(tensor);
      }
      for (pdp::Index i = 0; i < parameter.file_elements(); ++i) {
        const double place = 0.618033988749895 * static_cast<double>(i + 1) + 0.137 * number;
        tensor.values.push_back(static_cast<float>(2 * (2 * (place - std::floor(place)) - 1) / std::sqrt(inputs) + (is_scale ? 1 : 0)));
      }
      tensors.push_back(tensor);
      ++number;
    });
  });
  return tensors;
}

/// Checks that the losses of `steps` steps are PyTorch's.
inline void check_losses(const std::vector<double>& found, const std::string& model) {
  const std::vector<double> expected = losses_of_torch(model);
  REQUIRE(expected.size() == 100);
  REQUIRE(found.size() == steps);
  for (std::size_t step = 0; step < found.size(); ++step) {
    INFO("step " << step);
    REQUIRE_THAT(found[step], WithinRel(expected[step], 1e-4));
  }
}

}  // namespace parity
