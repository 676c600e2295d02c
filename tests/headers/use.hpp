// Instantiates the templates that most programs use, so that their bodies are compiled, too.
#pragma once

#include <pdp/pdp.hpp>

namespace use_of_headers {

using namespace pdp;

constexpr Task task{
    nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Residual{nn::Sequential{nn::Linear{64, 64}, nn::Tanh{}}}, nn::Linear{64, 10}},
    loss::CrossEntropy{}, optim::Adam{.lr = 1e-3f}};

template <strategy::Strategy S>
void train(comm::Thread& world, const data::Mnist& digits, const S& strategy) {
  Trainer trainer{world, strategy, task, {.global_batch = 32}};
  trainer.fit(
      digits.train(), {.epochs = 1}, [&](const Epoch& epoch) { print_epoch(world, epoch); }, [](auto, const auto&) {});
  print(world, "{:.3f}", trainer.accuracy(digits.test()));
}

inline void train_all(comm::Thread& world, const data::Mnist& digits) {
  train(world, digits, strategy::DataParallel{});
  train(world, digits, strategy::Zero{});
  train(world, digits, strategy::Pipeline<plan::ZeroBubble>{.micro_batches = 4});
}

}  // namespace use_of_headers
