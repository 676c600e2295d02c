// error: pdp: the second argument of fit must be FitOptions, of which you give some in this order: epochs, shuffle, progress
#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/parallel/single.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world, const pdp::data::InMemory<std::int32_t>& data) {
  pdp::Trainer trainer{world, pdp::parallel::Single{}, task, {.global_batch = 8}};
  trainer.fit(data, {.epoch = 1});
}
