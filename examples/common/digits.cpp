#include "common/digits.hpp"

#include <pdp/pdp.hpp>

#include "common/train_digits.hpp"

namespace examples {

namespace {

// [task]
constexpr pdp::Task digit_classifier{
    pdp::nn::Sequential{pdp::nn::Linear{784, 64}, pdp::nn::Relu{}, pdp::nn::Linear{64, 64}, pdp::nn::Relu{}, pdp::nn::Linear{64, 64},
                        pdp::nn::Relu{}, pdp::nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};
// [task]

template <class World, class... Device>
void train(World& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch, const Device&... device) {
  const auto unchanged = [](const auto& digits) { return digits; };
  train_digits(world, strategy, flags, digit_classifier, {.global_batch = global_batch, .seed = flags.seed}, unchanged, device...);
}

}  // namespace

void train_digits(pdp::comm::Any& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch) {
  train(world, strategy, flags, global_batch);
}

#ifdef PDP_EXAMPLES_WITH_GPUS
void train_digits(pdp::comm::Nccl& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch,
                  const pdp::cuda::Device& device) {
  train(world, strategy, flags, global_batch, device);
}

void train_digits(pdp::comm::CudaThread& world, const pdp::strategy::AnyStrategy& strategy, const Flags& flags, pdp::Index global_batch,
                  const pdp::cuda::Device& device) {
  train(world, strategy, flags, global_batch, device);
}
#endif

}  // namespace examples
