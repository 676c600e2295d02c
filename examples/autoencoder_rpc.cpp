// Trains an auto-encoder of handwritten digits in two halves: the encoder on worker1 and the decoder on worker2. The master has only
// references to them. It records each step in a Context, whose backward pass runs on the workers.
//
//   autoencoder_rpc --ranks 3 --epochs 5
//   autoencoder_rpc --threads 3 --pipelined
//   srun -n 3 autoencoder_rpc

#include <deque>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/pdp.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/distributed_optimizer.hpp>
#include <pdp/rpc/network_parameters.hpp>
#include <pdp/rpc/run.hpp>
#include <pdp/rpc/sub_network.hpp>

#include "common/autoencoder.hpp"
#include "common/run.hpp"

namespace rpc = pdp::rpc;

// [types]
using Encoder = rpc::SubNetworkOf<examples::encoder>;
using Decoder = rpc::SubNetworkOf<examples::decoder>;
// [types]

/// The losses of a step's micro-batches, which may still be in flight.
struct Step {
  int epoch;
  pdp::Index batch;
  std::vector<rpc::autograd::Loss> losses;

  double mean() {
    double sum = 0, rows = 0;
    for (rpc::autograd::Loss& each : losses) {
      sum += each.sums().loss;
      rows += static_cast<double>(each.rows());
    }
    return sum / rows;
  }
};

void train(rpc::Node& node, const examples::AutoencoderFlags& flags) {
  examples::PixelBatches batches{flags};
  examples::AutoencoderReport report{flags};

  // [construct]
  // The positions give the parameters the names and initial values that they have in nn::Sequential{encoder, decoder}.
  const auto encoder =
      node.remote<Encoder>("worker1", rpc::NetworkOptions{.seed = flags.seed, .position = 0, .devices = flags.devices}, flags.latent);
  const auto decoder =
      node.remote<Decoder>("worker2", rpc::NetworkOptions{.seed = flags.seed, .position = 1, .devices = flags.devices}, flags.latent);
  rpc::DistributedOptimizer adam{node, examples::autoencoder_rule, encoder, decoder};
  // [construct]

  constexpr std::size_t steps_ahead = 2;  // that the master starts before it needs the loss of a step
  std::deque<Step> in_flight;
  // [report]
  const auto report_until = [&](std::size_t left) {
    for (; in_flight.size() > left; in_flight.pop_front())
      report.batch(in_flight.front().epoch, in_flight.front().batch, in_flight.front().mean());
  };
  // [report]
  for (int epoch = 0; epoch < flags.epochs; ++epoch) {
    batches.start(epoch);
    for (pdp::Index batch = 0; batch < batches.count(); ++batch) {
      const std::vector<float> pixels = batches[batch];
      const pdp::Index rows = pdp::as_index(pixels.size()) / 784, parts = flags.pipelined ? std::min<pdp::Index>(4, rows) : 1;
      // [step]
      rpc::autograd::Context context{node};
      Step& step = in_flight.emplace_back(Step{epoch, batch, {}});
      const auto part_of = [&](pdp::Index part) {
        const pdp::Index first = rows * part / parts, last = rows * (part + 1) / parts;
        return rpc::OwnedMatrix{last - first, 784, {pixels.begin() + first * 784, pixels.begin() + last * 784}};
      };
      // The calls of a network run in the order in which they were made. So the encoder computes the next part before it waits for a
      // gradient, and the decoder makes the backward pass of a part before it waits for the next one.
      auto next = context.forward(encoder, part_of(0));
      for (pdp::Index part = 0; part < parts; ++part) {
        const auto code = std::move(next);
        if (part + 1 < parts) next = context.forward(encoder, part_of(part + 1));
        const auto image = context.forward(decoder, code);  // the code travels from worker1 to worker2
        step.losses.push_back(context.loss(pdp::loss::MeanSquaredError{}, image, part_of(part).values, rows));
        context.backward(step.losses.back());
      }
      adam.step(context);
      // [step]
      // [wait]
      report_until(examples::AutoencoderReport::prints(batch) ? 0 : steps_ahead);
      // [wait]
    }
  }
  report_until(0);
  adam.wait();
  report.close();
  // [save]
  if (!flags.save.empty()) pdp::checkpoint::save(flags.save, rpc::parameters(encoder, decoder));
  // [save]
}

int main(int argc, char** argv) {
  const auto flags = examples::parse_autoencoder(
      argc, argv, "Trains an auto-encoder of handwritten digits in two halves, which are remote objects.", true);

  // [main]
  return examples::run(flags.launch, [&](pdp::comm::Any& world) {
    rpc::serve(world, {"master", "worker1", "worker2"}, [&](rpc::Node& node) { train(node, flags); }, {.timeline = flags.timeline});
  });
  // [main]
}
