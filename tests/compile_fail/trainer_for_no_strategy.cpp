// error: pdp: the second argument of Trainer must be a strategy
#include <pdp/comm/self.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/task.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

class Holder {
  pdp::TrainerFor<pdp::comm::Self, decltype(task), pdp::strategy::Single> trainer_;
};
