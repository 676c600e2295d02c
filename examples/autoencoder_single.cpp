// Trains an auto-encoder of handwritten digits on one rank. autoencoder_rpc trains the same model in two halves on two workers.
//
//   autoencoder_single --epochs 5

#include <optional>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/pdp.hpp>
#include <pdp/train/report.hpp>

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
    std::optional<pdp::Report<decltype(trainer)>> page;
    if (!flags.report.empty()) page.emplace(trainer, flags.report);
    for (int epoch = 0; epoch < flags.epochs; ++epoch) {
      batches.start(epoch);
      for (pdp::Index batch = 0; batch < batches.count(); ++batch) {
        const std::vector<float> x = batches[batch];
        const pdp::engine::Totals totals = trainer.step(x, x);
        report.batch(epoch, batch, totals.mean_loss());
        if (page) page->step(trainer.steps() - 1, totals);
      }
    }
    report.close();
    if (page) page->write();
    if (!flags.save.empty()) pdp::checkpoint::save(flags.save, trainer.parameters());
  });
}
