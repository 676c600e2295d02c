// error: a plan cannot run
// error: Finding<.*(deadlock|1).*, 0, 4, 1>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/verify/verify.hpp>

using namespace pdp::strategy;
namespace nn = pdp::nn;

/// Two micro-batches. Rank 1 first waits for micro-batch 1. But rank 0 sends it only after rank 1 has sent the gradient of micro-batch 0.
struct Crossed {
  static constexpr int chunks = 1;
  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    using enum Action::Kind;
    const int first = at.rank == 0 ? 0 : 1;
    return {{forward, first}, {backward, first}, {forward, 1 - first}, {backward, 1 - first}};
  }
};

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}};
static_assert(is_sound<[] { return verify(Pipeline<Crossed>{.micro_batches = 2}, nn::outline(mlp, pdp::Shape{784}), 2); }>);
