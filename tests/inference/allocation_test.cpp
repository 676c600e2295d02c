#include "engine/allocations.hpp"

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage_parameters.hpp>

#include <thread>
#include <vector>

#include "catch.hpp"

namespace inference_allocation_test {

namespace nn = pdp::nn;

TEST_CASE("Predictor::predict allocates nothing, whatever the number of rows and callers", "[inference][allocation]") {
  if (!allocations::are_counted) return;
  constexpr nn::Sequential wide{nn::Linear{784, 64}, nn::Repeat{2, nn::Residual{nn::Sequential{nn::Linear{64, 64}, nn::Relu{}}}},
                                nn::Linear{64, 10}};
  std::vector<pdp::checkpoint::Tensor> zeros;
  for (const nn::LayerParameter& each : nn::parameters_of(wide)) zeros.push_back(pdp::checkpoint::tensor_of(each.parameter));
  const pdp::Predictor predictor{wide, zeros, "a test", {.rows = 16, .callers = 2}};
  const std::vector<float> x(50 * 784, 1);
  std::vector<float> out(50 * 10);
  const auto predict_all = [&](std::vector<float>& to) {
    for (const std::size_t rows : std::initializer_list<std::size_t>{50, 1, 16, 17, 0, 33})
      predictor.predict(std::span{x}.first(rows * 784), std::span{to}.first(rows * 10));
  };
  predict_all(out);  // oneDNN makes its kernels
  const long before = allocations::count;
  predict_all(out);
  CHECK(allocations::count == before);

  long of_threads[2] = {};
  std::vector<float> outs[2] = {out, out};
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        predict_all(outs[thread]);
        const long first = allocations::count;
        predict_all(outs[thread]);
        of_threads[thread] = allocations::count - first;
      });
      threads.back().join();  // one at a time, since the count is of all threads
    }
  }
  CHECK(of_threads[0] + of_threads[1] == 0);
}

}  // namespace inference_allocation_test
