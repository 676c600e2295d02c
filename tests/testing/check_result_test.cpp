#include <iostream>

#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
// [checks]
#include <pdp/testing/gradients.hpp>
#include <pdp/testing/loss_gradients.hpp>
#include <pdp/testing/optimizer.hpp>
// [checks]

#include "../examples/docs/lion.hpp"
#include "catch.hpp"

namespace nn = pdp::nn;

TEST_CASE("CheckResult is true and its text is empty if a check finds no fault", "[testing]") {
  // [calls]
  const auto of_model = pdp::testing::check_gradients(nn::Sequential{nn::Linear{5, 4}, nn::Tanh{}}, pdp::Shape{5});
  const auto of_loss = pdp::testing::check_loss_gradients(pdp::loss::CrossEntropy{}, 4);
  const auto of_rule = pdp::testing::check_optimizer(Lion{.lr = 1e-2f});
  for (const auto& result : {of_model, of_loss, of_rule})
    if (!result) std::cerr << result.text() << '\n';
  // [calls]
  CHECK((of_model && of_loss && of_rule));
  CHECK((of_model.text() + of_loss.text() + of_rule.text()).empty());
  const pdp::testing::CheckResult faulty{"the layer is wrong"};
  CHECK_FALSE(static_cast<bool>(faulty));
  CHECK(faulty.text() == "the layer is wrong");
}
