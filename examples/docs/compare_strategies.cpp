// The program of docs/how-to/choose_a_strategy.md. It prints what a rank of
// each strategy holds, sends and waits for, without training.

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <pdp/pdp.hpp>

namespace nn = pdp::nn;
using namespace pdp::strategy;

// [model]
constexpr pdp::Task task_of_16_layers{
    nn::Repeat{16, nn::Sequential{nn::Linear{512, 512, false}, nn::Relu{}}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};
constexpr int ranks = 4;
constexpr pdp::TrainerOptions options{.global_batch = 256};
// [model]

// [describe]
/// Prints a line for the rank that holds most.
void print(std::string_view name, const AnyStrategy& strategy, int of_ranks) {
  const auto all =
      pdp::describe(task_of_16_layers, strategy, of_ranks, options);
  const auto memory = [](const pdp::plan::RankUse& rank) {
    return rank.parameters + rank.gradients + rank.optimizer_state +
           rank.activations;
  };
  const auto most = *std::ranges::max_element(all.ranks, {}, memory);
  const auto mebibytes = [](pdp::Index bytes) {
    return static_cast<double>(bytes) / (1 << 20);
  };
  fmt::print("{:<20}{:10.1f}{:10.1f}{:10.1f}{:12.1f}{:8.1f}{:9.2f}\n", name,
             mebibytes(most.parameters), mebibytes(most.gradients),
             mebibytes(most.optimizer_state), mebibytes(most.activations),
             mebibytes(most.sent), all.bubble());
}
// [describe]

int main() {
  fmt::print("{:<20}{:>10}{:>10}{:>10}{:>12}{:>8}{:>9}\n", "in MiB",
             "parameters", "gradients", "optimizer", "activations", "sent",
             "bubble");
  print("Single", Single{}, 1);
  print("DataParallel", DataParallel{}, ranks);
  print("Zero, stage 1", Zero{.stage = 1}, ranks);
  print("Zero, stage 2", Zero{.stage = 2}, ranks);
  print("Zero, stage 3", Zero{.stage = 3}, ranks);
  print("TensorParallel", TensorParallel{}, ranks);
  print("model parallel", Pipeline<>{.micro_batches = 1}, ranks);
  print("GPipe", Pipeline<GPipe>{.micro_batches = 8}, ranks);
  print("1F1B", Pipeline<OneForwardOneBackward>{.micro_batches = 8}, ranks);
  print("1F1B, recompute", Pipeline<>{.micro_batches = 8, .recompute = true},
        ranks);
  print("Interleaved", Pipeline<Interleaved>{.micro_batches = 8}, ranks);
  print("ZeroBubble", Pipeline<ZeroBubble>{.micro_batches = 8}, ranks);
  print("2 x 2 Hybrid",
        Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 8},
        ranks);
}
