// Trains an auto-encoder of handwritten digits on one rank. autoencoder_rpc trains the same model in two halves on two workers.
//
//   autoencoder_single --epochs 5

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/pdp.hpp>

#include "common/autoencoder.hpp"
#include "common/run.hpp"

int main(int argc, char** argv) {
  const auto flags = examples::parse_autoencoder(argc, argv, "Trains an auto-encoder of handwritten digits on one rank.", false);

  return examples::run_alone(flags.launch, [&](pdp::comm::Any& world) {
    // [task]
    const pdp::Task task{pdp::nn::Sequential{examples::encoder(flags.latent), examples::decoder(flags.latent)},
                         pdp::loss::MeanSquaredError{}, examples::autoencoder_rule};
    // [task]
    examples::PixelBatches batches{flags};
    examples::AutoencoderReport report{flags};
    pdp::Trainer trainer{
        world, pdp::strategy::AnyStrategy{pdp::strategy::Single{}}, task, {.global_batch = flags.batch_size, .seed = flags.seed}};
    for (int epoch = 0; epoch < flags.epochs; ++epoch) {
      batches.start(epoch);
      for (pdp::Index batch = 0; batch < batches.count(); ++batch) {
        const std::vector<float> x = batches[batch];
        report.batch(epoch, batch, trainer.step(x, x).mean_loss());
      }
    }
    report.close();
    if (!flags.save.empty()) pdp::checkpoint::save(flags.save, trainer.parameters());
  });
}
