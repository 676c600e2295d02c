// error: pdp: the first argument of Trainer must be a communicator
#include <pdp/comm/self.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

/// A communicator of one rank that lacks send_async for floats.
struct Forgetful : pdp::comm::Self {
  using Self::Self;
  Forgetful(Self&& group) : Self{std::move(group)} {}
  [[nodiscard]] Forgetful split(int color, int key) { return Self::split(color, key); }
  Work send_async(std::span<const float> values, int peer, int tag) = delete;
};

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(Forgetful& world) { pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}}; }
