#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{4, 2}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world, const pdp::data::InMemory<std::int32_t>& data) {
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}};
  trainer.fit(data, {.epochs = 1});
}
