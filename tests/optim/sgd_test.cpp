#include <pdp/optim/sgd.hpp>

#include <array>

#include "catch.hpp"
#include "optim/sequence.hpp"

using pdp::optim::Sgd;

TEST_CASE("Sgd follows PyTorch's formula with momentum, weight decay and Nesterov momentum", "[optim]") {
  const float momentum = GENERATE(0.0f, 0.5f, 0.9f), weight_decay = GENERATE(0.0f, 0.1f);
  const bool nesterov = GENERATE(false, true);
  INFO("momentum " << momentum << ", weight decay " << weight_decay << ", Nesterov " << nesterov);
  const double lr = 0.03;
  std::array<double, sequence::count> buffer{};
  const auto expected = sequence::expected_after([&](double& w, double g, std::size_t i, std::int64_t step, double factor) {
    g += static_cast<double>(weight_decay) * w;
    buffer[i] = step == 1 ? g : static_cast<double>(momentum) * buffer[i] + g;
    w -= factor * lr * (nesterov ? g + static_cast<double>(momentum) * buffer[i] : buffer[i]);
  });
  const Sgd rule{.lr = 0.03f, .momentum = momentum, .weight_decay = weight_decay, .nesterov = nesterov};
  CHECK(support::difference(sequence::parameters_after(rule), expected) < 3e-6);
}

TEST_CASE("Each option of Sgd changes the resulting parameters", "[optim]") {
  // Otherwise the test above could pass for a rule that ignores an option.
  const auto plain = sequence::parameters_after(Sgd{.lr = 0.03f, .momentum = 0.9f});
  CHECK(support::difference(plain, sequence::parameters_after(Sgd{.lr = 0.03f})) > 0.1);
  CHECK(support::difference(plain, sequence::parameters_after(Sgd{.lr = 0.03f, .momentum = 0.9f, .nesterov = true})) > 0.01);
  CHECK(support::difference(plain, sequence::parameters_after(Sgd{.lr = 0.03f, .momentum = 0.9f, .weight_decay = 0.1f})) > 0.01);
}
