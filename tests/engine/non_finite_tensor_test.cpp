#include <pdp/core/finite.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/non_finite_tensor.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage_parameters.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include "catch.hpp"

namespace non_finite_tensor_test {

using namespace pdp::engine;
using pdp::Index;
using Kind = NonFiniteTensor::Kind;

namespace {

const float nan_value = pdp::not_a_number<float>(), infinite_value = pdp::positive_infinity<float>();

pdp::StepNumbers with_loss(double loss, bool skips = false) {
  pdp::StepNumbers numbers;
  numbers.sums.loss = loss;
  numbers.skips = skips;
  return numbers;
}

}  // namespace

TEST_CASE("look_at counts values that are not finite, and finds the first row that has one", "[engine][non_finite]") {
  CHECK(!look_at(Kind::input, 0, std::vector<float>{}, 3));
  CHECK(!look_at(Kind::input, 0, std::vector<float>{1, -2, 3e38f, 1e-40f}, 2));
  const NonFiniteTensor found = look_at(Kind::input, 0, std::vector<float>{1, 2, 3, 4, 5, nan_value, -infinite_value, 8, 9}, 3);
  CHECK((found.kind == Kind::input && found.not_finite == 2 && found.elements == 9 && found.row == 1));
  CHECK(look_at(Kind::parameter, 4, std::vector<pdp::BFloat16>{pdp::BFloat16{1.0f}, pdp::BFloat16{infinite_value}}).row == -1);
}

TEST_CASE("find_in_batch looks only at what a rank reads", "[engine][non_finite]") {
  const std::vector<float> fine(6, 1), bad{1, 1, 1, 1, nan_value, 1};
  const pdp::cpu::Cpu cpu;
  const auto batch = [](const std::vector<float>& x, const std::vector<float>& y) { return Batch<float, float>{{x.data(), 3, 2}, y}; };
  CHECK(!find_in_batch(cpu, batch(fine, fine), true, true));
  CHECK(find_in_batch(cpu, batch(bad, bad), true, true).kind == Kind::input);
  const NonFiniteTensor targets = find_in_batch(cpu, batch(bad, bad), false, true);
  CHECK((targets.kind == Kind::targets && targets.row == 2));
  CHECK(!find_in_batch(cpu, batch(bad, bad), false, false));
  CHECK(!find_in_batch(cpu, Batch<float, float>{}, true, true));
  const std::vector<std::int32_t> classes(3);
  CHECK(!find_in_batch(cpu, Batch<float, std::int32_t>{{fine.data(), 3, 2}, classes}, true, true));
}

TEST_CASE("The message of a NonFiniteLoss names the tensor that comes first", "[engine][non_finite]") {
  const auto parameters = pdp::nn::parameters_of(pdp::nn::Sequential{pdp::nn::Linear{2, 3}, pdp::nn::Linear{3, 1}});
  const NonFiniteTensor none, input{Kind::input, 0, 1, 64, 3}, targets{Kind::targets, 0, 2, 8, 0}, first{Kind::parameter, 0, 6, 6},
      last{Kind::parameter, 3, 1, 1}, early{Kind::gradient, 1, 3, 3}, late{Kind::gradient, 2, 1, 3};
  const auto words = [&](const std::vector<NonFiniteTensor>& found) {
    return words_of_non_finite_loss(with_loss(static_cast<double>(nan_value)), 7, found, parameters);
  };
  CHECK(
      words({none, input, first, input}) ==
      "step 7: the loss is NaN; on rank 1, as on 1 other, 1 of the 64 values of the input is not finite (NaN or infinity), the first in "
      "row "
      "3 of that rank; look at the samples of that step, or skip such steps (NonFinite::skip); the parameters have been updated since, so "
      "continue from the last good checkpoint");
  CHECK_THAT(words({first, targets}),
             Contains("on rank 1, 2 of the 8 values of the targets are not finite (NaN or infinity), the first in"));
  CHECK_THAT(words({last, first, first, first}),
             Contains("; on rank 1, as on 2 others, 6 of the 6 values of the parameter 0.weight are not"));
  CHECK_THAT(words({early, none, late}), Contains("; on rank 2, 1 of the 3 values of the gradient of 1.weight is not finite"));
  const std::vector<NonFiniteTensor> nothing{none, none};
  CHECK(
      words_of_non_finite_loss(with_loss(static_cast<double>(infinite_value), true), 0, nothing, parameters) ==
      "step 0: the loss is infinite, though the inputs, targets, parameters and gradients of all ranks are finite, so the outputs are too "
      "large; lower the learning rate, clip the gradient (clip_norm), look at the samples of that step, or skip such steps "
      "(NonFinite::skip); the gradient was not finite, so no parameter has been changed");
  const std::vector<NonFiniteTensor> one{none, last};
  CHECK_THAT(words_of_non_finite_parameters(1, one, parameters),
             StartsWith("after 1 step: on rank 1, 1 of the 1 values of the parameter 1.bias is not finite (NaN or infinity), so no"));
}

}  // namespace non_finite_tensor_test
