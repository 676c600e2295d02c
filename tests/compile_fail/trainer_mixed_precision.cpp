// error: pdp: the device lacks one of the operations of core/device.hpp for this element type
#include <pdp/comm/self.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world) { pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}, pdp::MixedFloat16{}}; }
