// error: pdp: the device and the communicator use different kinds of memory
#include <pdp/comm/thread.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/train/trainer.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Thread& world, const pdp::cuda::Device& device) {
  pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = 8}, device};
}
