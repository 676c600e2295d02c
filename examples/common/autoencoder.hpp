#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pdp/launch/options.hpp>
#include <pdp/pdp.hpp>
#include <pdp/train/log.hpp>

/// Shared by the programs that train an auto-encoder of MNIST's digits.
namespace examples {

// [halves]
/// The two halves of the auto-encoder: 784 -> 128 -> latent and latent -> 128 -> 784.
inline auto encoder(pdp::Index latent) { return pdp::nn::Sequential{pdp::nn::Linear{784, 128}, pdp::nn::Linear{128, latent}}; }
inline auto decoder(pdp::Index latent) { return pdp::nn::Sequential{pdp::nn::Linear{latent, 128}, pdp::nn::Linear{128, 784}}; }
// [halves]
constexpr pdp::optim::Adam autoencoder_rule{.lr = 0.01f};

struct AutoencoderFlags {
  pdp::launch::Options launch;
  int epochs = 5;
  pdp::Index latent = 28;
  pdp::Index batch_size = 64;
  std::uint64_t seed = 0;
  std::string data, losses, save, timeline, report;
  int devices = 1;         // of each worker
  bool pipelined = false;  // cut batches into micro-batches
};

/// Parses the command line. `remote`: adds the flags of the program with remote objects. Exits with 0 after --help, and with 2 after an
/// invalid flag.
AutoencoderFlags parse_autoencoder(int argc, char** argv, const std::string& description, bool remote);

/// The batches of an epoch: pixels of digits from 0 to 1, in the same order for equal seeds.
class PixelBatches {
 public:
  explicit PixelBatches(const AutoencoderFlags& flags);

  void start(int epoch) { sampler_.start(epoch); }
  [[nodiscard]] pdp::Index count() const { return sampler_.steps(); }
  /// Returns the pixels of batch `number`: [samples, 784].
  [[nodiscard]] std::vector<float> operator[](pdp::Index number) const;

 private:
  pdp::data::Digits digits_;
  pdp::data::Sampler sampler_;
};

/// Prints every 20th loss of an epoch, and writes all of them to the file of --losses.
class AutoencoderReport {
 public:
  explicit AutoencoderReport(const AutoencoderFlags& flags);
  /// Whether a loss must be known at once, because it is printed.
  [[nodiscard]] static bool prints(pdp::Index batch) { return batch % 20 == 0; }
  void batch(int epoch, pdp::Index batch, double loss);
  /// Closes the file. Throws pdp::FileError if it could not be written completely.
  void close();

 private:
  std::optional<pdp::LossLog> losses_;
  std::int64_t steps_ = 0;
};

}  // namespace examples
