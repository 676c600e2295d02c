#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{4, 10}}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world, const pdp::data::InMemory<std::int32_t>& set) {
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}};
  trainer.fit(set, {.epochs = 1});
}
