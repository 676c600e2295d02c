#include "common/digits.hpp"

#include <optional>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/pdp.hpp>

#include "common/reports.hpp"

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
  const pdp::TrainerOptions options{.global_batch = global_batch, .seed = flags.seed};
  if (flags.plan) return print_plan(world, flags, digit_classifier, strategy, options);
  const bool is_root = world.rank() == 0;  // only rank 0 writes files
  // [trainer]
  const pdp::data::Mnist digits{flags.data};
  pdp::Trainer trainer{world, strategy, digit_classifier, options, device...};
  // [trainer]
  Reports reports{trainer, flags, world.rank()};
  std::optional<pdp::EpochLog> log;
  if (is_root && !flags.log.empty()) log.emplace(flags.log);
  if (is_root && !flags.save.empty()) pdp::data::check_writable(flags.save);
  if (!flags.load.empty()) trainer.set_parameters(pdp::checkpoint::load(flags.load), flags.load);

  // [epoch]
  const auto after_epoch = [&](const pdp::Epoch& epoch) {
    pdp::print_epoch(world, epoch);
    const double accuracy = flags.log.empty() && flags.report.empty() ? 0 : trainer.accuracy(digits.test());
    if (log) log->write(epoch, accuracy);
    reports.epoch(epoch);
    reports.metric("test accuracy", accuracy);
    if (flags.save.empty()) return;
    const auto parameters = trainer.parameters();
    if (is_root) pdp::checkpoint::save(flags.save, parameters);
  };
  // [epoch]
  // [fit]
  trainer.fit(digits.train(),
              {.epochs = flags.epochs,
               .checkpoint = {.directory = flags.checkpoint, .every_steps = flags.checkpoint_every, .stop_after = flags.stop_after}},
              after_epoch, [&](auto step, const auto& totals) { reports.step(step, totals); });
  // [fit]
  if (log) log->close();
  reports.close();

  // [accuracy]
  pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
  // [accuracy]
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
