// error: pdp: copy_parameters\(\) needs a trainer with parameters of the same type
#include <pdp/comm/self.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/task.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

inline void copy(pdp::comm::Self& world) {
  pdp::Trainer from{world, pdp::strategy::Single{}, task, {.global_batch = 8}, pdp::Float64{}};
  pdp::Trainer to{world, pdp::strategy::Single{}, task, {.global_batch = 8}};
  to.copy_parameters(from);
}
