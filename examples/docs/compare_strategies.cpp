// The program of docs/how-to/choose_a_strategy.md. It prints what a rank of
// each strategy holds, sends and waits for, without training.

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

int main() {
  // [compare]
  const pdp::plan::Comparison all = pdp::compare(
      task_of_16_layers,
      {{"Single", Single{}, 1},
       {"DataParallel", DataParallel{}},
       {"Zero, stage 1", Zero{.stage = 1}},
       {"Zero, stage 2", Zero{.stage = 2}},
       {"Zero, stage 3", Zero{.stage = 3}},
       {"TensorParallel", TensorParallel{}},
       {"model parallel", Pipeline<>{.micro_batches = 1}},
       {"GPipe", Pipeline<GPipe>{.micro_batches = 8}},
       {"1F1B", Pipeline<>{.micro_batches = 8}},
       {"1F1B, recompute", Pipeline<>{.micro_batches = 8, .recompute = true}},
       {"Interleaved", Pipeline<Interleaved>{.micro_batches = 8}},
       {"ZeroBubble", Pipeline<ZeroBubble>{.micro_batches = 8}},
       {"2 x 2 Hybrid",
        Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 8}}},
      ranks, options);
  fmt::print("{}\n", all.text());
  // [compare]
}
