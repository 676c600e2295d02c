#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>

#include "catch.hpp"
#include "strategy/communicators.hpp"
#include "strategy/tasks.hpp"

namespace comm = pdp::comm;
using namespace pdp::strategy;

// The long form of the equivalence tests. Losses agree within 1e-5 for 20 steps, and then within 10 times the drift of the control run; see
// testing/equivalence.hpp.

TEMPLATE_LIST_TEST_CASE("Every strategy gives the losses of Single for 100 steps", "[parallel][equivalence][.long]", Communicators) {
  const auto samples = tasks::samples(250);  // 26 rows in the last of 8 batches: uneven shares, short or empty micro-batches
  const double clip_norm = GENERATE(0.0, 0.5);
  const auto follows = [&](const AnyStrategy& strategy, int ranks) {
    CAPTURE(ranks, clip_norm);
    const auto report = pdp::testing::serial_equivalence<TestType>(tasks::residual_classifier(7), samples, strategy, ranks,
                                                                   {.steps = 100, .gradient = {.clip_norm = clip_norm}});
    INFO(report.text());
    CHECK(report);
    CHECK(report.strategy().size() == 100);
    CHECK(report.strategy().back() < 0.8 * report.strategy().front());
  };
  for (const int ranks : {2, 4}) {
    for (const int accumulate : {1, 3}) {
      follows(DataParallel{.accumulate = accumulate, .unit_elements = 64}, ranks);
      for (const int stage : {1, 2, 3}) follows(Zero{.stage = stage, .accumulate = accumulate, .unit_elements = 64}, ranks);
      follows(TensorParallel{.accumulate = accumulate}, ranks);
    }
    for (const int m : {1, 3, 8}) {
      follows(Pipeline<GPipe>{.micro_batches = m}, ranks);
      follows(Pipeline<OneForwardOneBackward>{.micro_batches = m, .join_weights = 2}, ranks);
      follows(Pipeline<OneForwardOneBackward>{.micro_batches = m, .recompute = true}, ranks);
      follows(Pipeline<Interleaved>{.micro_batches = m}, ranks);
      follows(Pipeline<ZeroBubble>{.micro_batches = m}, ranks);
    }
  }
  follows(Hybrid<OneForwardOneBackward>{.mesh = {2, 2, 2}, .micro_batches = 3}, 8);
  follows(Hybrid<GPipe>{.mesh = {2, 2, 2}, .micro_batches = 3}, 8);
}
