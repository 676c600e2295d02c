// A layer with a buffer, a loss, an optimizer rule, a dataset, a strategy, a metric and a callback of the program's own: own_parts --ranks
// 2
#include <cmath>
#include <span>
#include <string>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

#include "own_layer.hpp"

struct SignDescent {
  float lr = 0;
  template <class V>
  struct State {};
  template <class V>
  constexpr void update(V& w, const V& g, State<V>&, const pdp::StepInfo& step) const {
    w = w - step.lr_factor * lr * pdp::optim::sign(g);
  }
};
struct Wave {  // sin(x) from 5 to 8, computed when it is needed
  using Target = float;
  pdp::Index size() const { return 300; }
  pdp::Shape sample_shape() const { return pdp::Shape{1}; }
  pdp::Shape target_shape() const { return pdp::Shape{1}; }
  void gather(std::span<const pdp::Index> which, std::span<float> x, std::span<float> y) const {
    for (std::size_t i = 0; i < which.size(); ++i) y[i] = std::sin(x[i] = 5 + 0.01f * static_cast<float>(which[i]));
  }
};
struct OneMessage {  // data parallelism with all gradients in one message
  pdp::plan::Plan plan(const pdp::nn::Outline& model, pdp::plan::RankInWorld at) const {
    return pdp::strategy::DataParallel{.unit_elements = 1 << 30}.plan(model, at);
  }
};
struct Bias {  // mean of the errors with their signs
  std::string name() const { return "bias"; }
  pdp::Index state_size(pdp::Index) const { return 2; }
  void add(pdp::Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const {
    for (std::size_t i = 0; i < targets.size(); ++i) state[0] += static_cast<double>(outputs.values()[i] - targets[i]);
    state[1] += static_cast<double>(targets.size());
  }
  double result(std::span<const double> state) const { return state[0] / state[1]; }
};
constexpr pdp::Task task{pdp::nn::Sequential{Centre{1}, pdp::nn::Linear{1, 32}, pdp::nn::Tanh{}, pdp::nn::Linear{32, 1}}, LogCosh{},
                         SignDescent{.lr = 2e-3f}, pdp::optim::Linear{.steps = 1200}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](pdp::comm::Default& world) {
    pdp::Trainer trainer{world, OneMessage{}, task, {.global_batch = 25, .seed = 1}};
    const auto enough = [](const pdp::Epoch& epoch) { return epoch.loss < 2e-4 ? pdp::Next::stop : pdp::Next::proceed; };
    const Wave wave;
    const pdp::FitOptions options{.epochs = 100, .validation = &wave, .metrics = {Bias{}}, .callbacks = {enough}};
    const auto history = trainer.fit(wave, options, [](const pdp::Epoch&) {});
    const auto parameters = trainer.parameters();  // on rank 0
    const double mean = parameters.empty() ? 0 : parameters.front().values.front();
    const bool learnt = history.size() < 100 && std::abs(history.back().validation->metric("bias").value()) < 0.05;
    pdp::print(world, "{}", learnt && std::abs(mean - 6.5) < 0.2 ? "own parts learnt" : "not learnt");
  });
}
