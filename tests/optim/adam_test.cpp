#include <pdp/optim/adam.hpp>

#include <array>
#include <cmath>

#include "catch.hpp"
#include "optim/sequence.hpp"

using pdp::optim::Adam;
using pdp::optim::AdamW;

namespace {

struct Settings {
  float lr, beta1, beta2, eps, weight_decay;
};

/// Computes PyTorch's formula of Adam, or of AdamW if `decoupled`.
std::vector<double> reference(const Settings& settings, bool decoupled) {
  const double lr = static_cast<double>(settings.lr), beta1 = static_cast<double>(settings.beta1),
               beta2 = static_cast<double>(settings.beta2), eps = static_cast<double>(settings.eps),
               decay = static_cast<double>(settings.weight_decay);
  std::array<double, sequence::count> mean{}, square{};
  return sequence::expected_after([&](double& w, double g, std::size_t i, std::int64_t step, double factor) {
    const double t = static_cast<double>(step), rate = factor * lr;
    if (decoupled)
      w *= 1 - rate * decay;
    else
      g += decay * w;
    mean[i] = beta1 * mean[i] + (1 - beta1) * g;
    square[i] = beta2 * square[i] + (1 - beta2) * g * g;
    w -= rate / (1 - std::pow(beta1, t)) * mean[i] / (std::sqrt(square[i]) / std::sqrt(1 - std::pow(beta2, t)) + eps);
  });
}

}  // namespace

TEST_CASE("Adam and AdamW follow PyTorch's formulas over twenty steps", "[optim]") {
  const Settings s = GENERATE(Settings{1e-3f, 0.9f, 0.999f, 1e-8f, 0}, Settings{0.1f, 0.9f, 0.999f, 1e-8f, 0.1f},
                              Settings{0.02f, 0.5f, 0.9f, 1e-3f, 0.5f}, Settings{0.02f, 0.0f, 0.99f, 1.0f, 0.01f});
  INFO("lr " << s.lr << ", betas " << s.beta1 << " and " << s.beta2 << ", eps " << s.eps << ", weight decay " << s.weight_decay);
  CHECK(support::difference(sequence::parameters_after(Adam{s.lr, s.beta1, s.beta2, s.eps, s.weight_decay}), reference(s, false)) < 3e-6);
  CHECK(support::difference(sequence::parameters_after(AdamW{s.lr, s.beta1, s.beta2, s.eps, s.weight_decay}), reference(s, true)) < 3e-6);
}

TEST_CASE("Adam and AdamW have the defaults of PyTorch", "[optim]") {
  CHECK(support::difference(sequence::parameters_after(Adam{}), reference({1e-3f, 0.9f, 0.999f, 1e-8f, 0}, false)) < 1e-6);
  CHECK(support::difference(sequence::parameters_after(AdamW{}), reference({1e-3f, 0.9f, 0.999f, 1e-8f, 1e-2f}, true)) < 1e-6);
}

TEST_CASE("The first step of Adam has the size of the learning rate for any gradient", "[optim]") {
  const float gradient = GENERATE(1e-4f, 1.0f, 1e6f);
  const Adam rule{.lr = 0.01f};
  float w = 0;
  Adam::State<float> state{};
  rule.update(w, gradient, state, rule.constants({1, 1}));
  CHECK(w == Approx(-0.01f).epsilon(1e-3));
}

TEST_CASE("Adam does not change parameters whose gradients are zero", "[optim]") {
  const Adam rule{};
  float w = 3;
  Adam::State<float> state{};
  for (int step = 1; step <= 3; ++step) rule.update(w, 0.0f, state, rule.constants({step, 1}));
  CHECK(w == 3);
}
