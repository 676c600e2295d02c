// error: pdp: update of this optimizer: argument 4, the step, must be `const StepInfo& step`
#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

struct Descent {
  float lr = 0.1f;
  template <class V>
  struct State {};
  template <class V>
  void update(V& parameter, V gradient, State<V>&, float) const {
    parameter = parameter - lr * gradient;
  }
};

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, Descent{}};

void train(pdp::comm::Self& world) { pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}}; }
