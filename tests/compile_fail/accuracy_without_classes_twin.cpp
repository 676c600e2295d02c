#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{4, 1}, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};

double report(pdp::comm::Self& world, const pdp::data::InMemory<float>& data) {
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}};
  return trainer.evaluate(data).mean_loss();
}
