#include <pdp/checkpoint/parameters.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/testing/values.hpp>

#include <cstddef>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace inference_threads_test {

namespace checkpoint = pdp::checkpoint;
namespace nn = pdp::nn;
using pdp::Predictor;
using pdp::testing::same_bits;

namespace {

constexpr nn::Sequential small{nn::Linear{3, 5}, nn::Relu{}, nn::Repeat{2, nn::Residual{nn::Sequential{nn::Linear{5, 5}, nn::Tanh{}}}},
                               nn::Linear{5, 2}};

std::vector<checkpoint::Tensor> tensors() {
  std::vector<checkpoint::Tensor> all;
  for (const nn::LayerParameter& each : nn::parameters_of(small)) {
    all.push_back(checkpoint::tensor_of(each.parameter));
    all.back().values = pdp::testing::normal(all.back().values.size(), all.size());
  }
  return all;
}

}  // namespace

TEST_CASE("Predictor gives each of many threads the outputs of its rows", "[inference]") {
  constexpr int threads = 5, calls = 40;
  const Predictor predictor{small, tensors(), "a test", {.rows = 2, .callers = 2}};
  std::vector<int> right(threads);
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&predictor, thread, &right] {
      const std::vector<float> x = pdp::testing::normal(static_cast<std::size_t>(1 + thread) * 3, thread);
      const std::vector<float> expected = predictor.predict(x);
      std::vector<float> out(expected.size());
      for (int call = 0; call < calls; ++call) {
        predictor.predict(x, out);
        right[static_cast<std::size_t>(thread)] += same_bits(out, expected) ? 1 : 0;
      }
    });
  }
  for (std::thread& each : all) each.join();
  CHECK(right == std::vector<int>(threads, calls));
  for (int thread = 0; thread < threads; ++thread) {
    const std::vector<float> x = pdp::testing::normal(static_cast<std::size_t>(1 + thread) * 3, thread);
    CHECK(same_bits(predictor.predict(x), Predictor{small, tensors(), "a test", {.rows = 2}}.predict(x)));
  }
}

}  // namespace inference_threads_test
