#include "common/autoencoder.hpp"

#include <limits>

#include <pdp/core/cast.hpp>
#include <pdp/train/print.hpp>

#include "common/command_line.hpp"

namespace examples {

AutoencoderFlags parse_autoencoder(int argc, char** argv, const std::string& description, bool remote) {
  AutoencoderFlags flags;
  flags.data = std::string{PDP_EXAMPLE_DATA} + "/mnist";
  CommandLine line{argc, argv, description};
  line.number("--epochs", flags.epochs, 0, 1'000'000, "passes over the training set");
  line.number("--latent", flags.latent, pdp::Index{1}, pdp::Index{1} << 16, "values between the encoder and the decoder");
  line.number("--batch-size", flags.batch_size, pdp::Index{1}, pdp::Index{1} << 20, "samples per step");
  line.number("--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
              "seed of the initial parameters and of the sample order");
  line.words("--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  line.words("--losses", flags.losses, "write the number and the loss of every step to this file (CSV)");
  line.words("--save", flags.save, "write the parameters to this file after the last epoch (safetensors)");
  if (remote) {
    line.ranks(flags.launch, " (default: 3, the master and two workers)");
    line.number("--devices-per-worker", flags.devices, 1, 2, "threads of each worker over which its layers are divided");
    line.words("--timeline", flags.timeline, "write a timeline of all calls to this file (.svg: a picture, .json: a Chrome trace)");
    line.add_flag("--pipelined", flags.pipelined, "cut each batch into 4 micro-batches, so that both workers compute at the same time");
  } else {
    line.report(flags.report);
  }
  line.read([&] {
    if (remote && !flags.launch.ranks_are_given()) flags.launch.ranks = 3;
  });
  return flags;
}

PixelBatches::PixelBatches(const AutoencoderFlags& flags)
    : digits_{pdp::data::Mnist{flags.data}.train()}, sampler_{digits_.size(), flags.batch_size, flags.seed} {}

std::vector<float> PixelBatches::operator[](pdp::Index number) const {
  const std::span<const pdp::Index> samples = sampler_.batch(number);
  std::vector<float> pixels(samples.size() * pdp::as_size(pdp::data::Digits::pixels));
  digits_.gather_pixels(samples, pixels);
  return pixels;
}

AutoencoderReport::AutoencoderReport(const AutoencoderFlags& flags) {
  if (!flags.losses.empty()) losses_.emplace(flags.losses);
}

void AutoencoderReport::batch(int epoch, pdp::Index batch, double loss) {
  if (losses_) losses_->write(steps_, loss);
  ++steps_;
  if (prints(batch)) pdp::print(pdp::comm::Self{}, "Epoch {} || Batch {} ---- Training MSE: {:.6f}", epoch, batch, loss);
}

void AutoencoderReport::close() {
  if (losses_) losses_->close();
}

}  // namespace examples
