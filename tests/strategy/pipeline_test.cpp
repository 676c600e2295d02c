#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/verify/verify.hpp>

#include <string>

#include "catch.hpp"
#include "support.hpp"

namespace pipeline_test {

namespace nn = pdp::nn;
using namespace pdp::strategy;

namespace {

constexpr nn::Sequential model{nn::Linear{8, 16}, nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 4}};

nn::Outline deep(pdp::Index depth) {
  return nn::outline(
      nn::Sequential{nn::Linear{8, 16}, nn::Repeat{depth, nn::Sequential{nn::Linear{16, 16}, nn::Relu{}}}, nn::Linear{16, 4}},
      pdp::Shape{8});
}

std::string words(const Instructions& list) {
  std::string joined;
  for (const Instruction& i : list) joined += describe(i) + (i.accumulate ? " (adds)\n" : "\n");
  return joined;
}

template <Strategy S>
constexpr bool sound(const S& strategy, int ranks) {
  const nn::Outline outline = nn::outline(model, pdp::Shape{8});
  return static_cast<bool>(verify(outline, plans(strategy, outline, ranks)));
}
static_assert(sound(Pipeline<GPipe>{.micro_batches = 4}, 2));
static_assert(sound(Pipeline<>{.stages = 3, .micro_batches = 4}, 3));
static_assert(sound(Pipeline<Interleaved>{.micro_batches = 3}, 2));
static_assert(sound(Pipeline<ZeroBubble>{.micro_batches = 4, .cuts = {1, 3}}, 3));
static_assert(sound(Pipeline<>{.micro_batches = 5, .join_weights = 3}, 2));

/// A faulty schedule for two ranks: rank 1 takes the micro-batches in reverse order.
struct Contrary {
  static constexpr int chunks = 1;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    if (at.rank == 0) return GPipe{}.actions(at);
    std::vector<Action> list;
    for (int m = at.micro_batches - 1; m >= 0; --m) list.insert(list.end(), {{Action::Kind::forward, m}, {Action::Kind::backward, m}});
    return list;
  }
};
static_assert(sound(Pipeline<Contrary>{.micro_batches = 2}, 2));
static_assert(!sound(Pipeline<Contrary>{.micro_batches = 3}, 2));

template <Strategy S>
void check_sound(const S& strategy, const nn::Outline& outline, int ranks) {
  const auto all = plans(strategy, outline, ranks);
  const Verdict verdict = verify(outline, all);
  if (!verdict) FAIL_CHECK(explain(verdict, all));
}

int peak(const auto& strategy, const nn::Outline& outline, int ranks) {
  return verify(outline, plans(strategy, outline, ranks)).peak_micro_batches;
}

/// Returns the error of a plan that cannot be made, or "nothing".
template <Strategy S>
std::string refusal(const S& strategy, int ranks) {
  return support::message_of<pdp::ConfigError>([&] {
           static_cast<void>(strategy.plan(nn::outline(model, pdp::Shape{8}), {0, ranks}));
         })
      .value_or("nothing");
}

}  // namespace

TEST_CASE("Pipeline makes sound plans for every schedule, number of ranks and number of micro-batches", "[parallel][verify][pipeline]") {
  const nn::Outline outline = deep(20);
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (const int m : {1, 2, 3, 4, 5, 7, 8, 12}) {
      CAPTURE(ranks, m);
      check_sound(Pipeline<GPipe>{.micro_batches = m}, outline, ranks);
      check_sound(Pipeline<>{.micro_batches = m}, outline, ranks);
      check_sound(Pipeline<ZeroBubble>{.micro_batches = m}, outline, ranks);
      for (const int join : {2, 3, 8}) {
        check_sound(Pipeline<>{.micro_batches = m, .join_weights = join}, outline, ranks);
        check_sound(Pipeline<Interleaved>{.micro_batches = m, .join_weights = join}, outline, ranks);
      }
      for (const int chunks : {1, 2, 3, 4}) check_sound(Pipeline<Interleaved>{.micro_batches = m, .schedule = {chunks}}, outline, ranks);
    }
}

TEST_CASE("verify reports how many micro-batches each schedule holds at once", "[parallel][verify][pipeline]") {
  const nn::Outline outline = deep(8);
  CHECK(peak(Pipeline<GPipe>{.micro_batches = 8}, outline, 4) == 8);
  CHECK(peak(Pipeline<>{.micro_batches = 8}, outline, 4) == 4);
  CHECK(peak(Pipeline<ZeroBubble>{.micro_batches = 8}, outline, 4) == 4);
  CHECK(peak(Pipeline<>{.micro_batches = 1}, outline, 4) == 1);
}

TEST_CASE("Pipeline posts receives before it computes, and sends a gradient before backward_weight", "[parallel][pipeline]") {
  const nn::Outline outline = nn::outline(model, pdp::Shape{8});
  const Plan front = Pipeline<>{.micro_batches = 2, .cuts = {3}}.plan(outline, {0, 2});
  CHECK(words(front.step) ==
        "count_start in group 0\n"
        "forward micro-batch 0, layers 0 to 2\n"
        "send_start activation 3 of micro-batch 0 to rank 1 of group 0\n"
        "receive_start gradient 3 of micro-batch 0 from rank 1 of group 0\n"
        "forward micro-batch 1, layers 0 to 2\n"
        "send_start activation 3 of micro-batch 1 to rank 1 of group 0\n"
        "receive_start gradient 3 of micro-batch 1 from rank 1 of group 0\n"
        "receive_wait gradient 3 of micro-batch 0 from rank 1 of group 0\n"
        "send_wait activation 3 of micro-batch 0 to rank 1 of group 0\n"
        "backward_input micro-batch 0, layers 2 to 2\n"
        "backward_weight micro-batch 0, layers 2 to 2\n"
        "backward_input micro-batch 0, layers 1 to 1\n"
        "backward_weight micro-batch 0, layers 1 to 1\n"
        "backward_input micro-batch 0, layers 0 to 0\n"
        "backward_weight micro-batch 0, layers 0 to 0\n"
        "receive_wait gradient 3 of micro-batch 1 from rank 1 of group 0\n"
        "send_wait activation 3 of micro-batch 1 to rank 1 of group 0\n"
        "backward_input micro-batch 1, layers 2 to 2\n"
        "backward_weight micro-batch 1, layers 2 to 2 (adds)\n"
        "backward_input micro-batch 1, layers 1 to 1\n"
        "backward_weight micro-batch 1, layers 1 to 1 (adds)\n"
        "backward_input micro-batch 1, layers 0 to 0\n"
        "backward_weight micro-batch 1, layers 0 to 0 (adds)\n"
        "count_wait in group 0\n"
        "totals_start in group 0\n"
        "update unit 0\n"
        "totals_wait in group 0\n");
  const Plan back = Pipeline<ZeroBubble>{.micro_batches = 2, .cuts = {3}}.plan(outline, {1, 2});
  CHECK_THAT(words(back.step), Contains("backward_input micro-batch 0, layers 4 to 4\n"
                                        "backward_input micro-batch 0, layers 3 to 3\n"
                                        "send_start gradient 3 of micro-batch 0 to rank 0 of group 0\n"
                                        "receive_wait activation 3 of micro-batch 1 from rank 0 of group 0\n"));
  CHECK_THAT(words(front.evaluate), EndsWith("send_wait activation 3 of micro-batch 0 to rank 1 of group 0\n"
                                             "receive_start activation 5 of micro-batch 0 from rank 1 of group 0\n"
                                             "receive_wait activation 5 of micro-batch 0 from rank 1 of group 0\n"));
}

TEST_CASE("Pipeline sends no gradient back to stages without parameters", "[parallel][pipeline]") {
  const nn::Outline outline = nn::outline(nn::Sequential{nn::Tanh{}, nn::Linear{8, 4}, nn::Tanh{}, nn::Linear{4, 4}}, pdp::Shape{8});
  const Pipeline<> strategy{.micro_batches = 3, .cuts = {1, 3}};
  check_sound(strategy, outline, 3);
  CHECK(words(strategy.plan(outline, {0, 3}).step).find("gradient") == std::string::npos);
  CHECK(words(strategy.plan(outline, {1, 3}).step).find("gradient 1") == std::string::npos);
}

TEST_CASE("verify rejects a schedule that deadlocks and shows the cycle", "[parallel][verify][pipeline]") {
  const nn::Outline outline = nn::outline(model, pdp::Shape{8});
  const auto all = plans(Pipeline<Contrary>{.micro_batches = 3, .cuts = {3}}, outline, 2);
  const Verdict verdict = verify(outline, all);
  CHECK(verdict.fault == Fault::deadlock);
  CHECK(explain(verdict, all) ==
        "the plan cannot run: rank 0, step instruction 9 (receive_wait gradient 3 of micro-batch 0 from rank 1 of group 0) waits for "
        "ever: rank 0, step instruction 9 (receive_wait gradient 3 of micro-batch 0 from rank 1 of group 0) waits for rank 1; rank 1, "
        "step instruction 19 (send_wait gradient 3 of micro-batch 2 to rank 0 of group 0) waits for rank 0");
}

TEST_CASE("Pipeline does not send an activation that is only a view of the batch", "[parallel][pipeline]") {
  const nn::Outline outline =
      nn::outline(nn::Sequential{nn::Flatten{}, nn::Linear{8, 16}, nn::Tanh{}, nn::Linear{16, 4}}, pdp::Shape{2, 4});
  const Pipeline<> strategy{.micro_batches = 2, .cuts = {1, 3}};
  check_sound(strategy, outline, 3);
  for (const int rank : {0, 1}) {
    const Plan plan = strategy.plan(outline, {rank, 3});
    for (const Instructions* list : {&plan.step, &plan.evaluate}) CHECK(words(*list).find("activation 1") == std::string::npos);
  }
}

TEST_CASE("Pipeline rejects a schedule with a stage or micro-batch that does not exist", "[parallel][pipeline][bad input]") {
  struct Beyond {
    int chunks = 1, chunk = 0, micro_batch = 0;
    [[nodiscard]] std::vector<Action> actions(PipelinePlace) const { return {{Action::Kind::forward, micro_batch, chunk}}; }
  };
  const nn::Outline outline = nn::outline(model, pdp::Shape{8});
  CHECK_THROWS_AS((Pipeline<Beyond>{.micro_batches = 2, .schedule = {1, 1, 0}}.plan(outline, {0, 2})), pdp::PlanError);
  CHECK_THROWS_WITH((Pipeline<Beyond>{.micro_batches = 2, .schedule = {1, 0, 2}}.plan(outline, {1, 2})),
                    "the schedule has rank 1 work on micro-batch 2 in its stage 0; there are 2 micro-batches, and 1 stages on each rank");
}

TEST_CASE("Pipeline throws ConfigError for invalid stages, micro-batches, chunks and cuts", "[parallel][pipeline][bad input]") {
  CHECK(refusal(Pipeline<>{}, 6) == "a model of 5 layers cannot be cut into 6 stages; each stage takes at least one layer");
  CHECK(refusal(Pipeline<Interleaved>{}, 3) == "a model of 5 layers cannot be cut into 6 stages; each stage takes at least one layer");
  CHECK(refusal(Pipeline<>{.stages = 3}, 2) == "stages = 3 was given, but the world's 2 ranks hold 1 each, 2 together");
  CHECK(refusal(Pipeline<Interleaved>{.stages = 4}, 2) == "nothing");
  CHECK(refusal(Pipeline<>{.micro_batches = 0}, 2) == "micro_batches = 0 was given; it takes 1 to 32767 micro-batches");
  CHECK(refusal(Pipeline<>{.join_weights = 0}, 2) == "join_weights = 0 was given; it takes 1 to 32767 micro-batches");
  CHECK(refusal(Pipeline<Interleaved>{.schedule = {0}}, 2) == "chunks = 0 was given; a rank holds at least 1 stage");
  CHECK(refusal(Pipeline<>{.cuts = {1, 2}}, 2) == "2 cuts make 3 stages, but there are 2");
  CHECK(refusal(Pipeline<>{.cuts = {3, 3}}, 3) == "a cut before layer 3 leaves an empty stage; cuts must increase, from 1 to at most 4");
  CHECK(refusal(Pipeline<>{.cuts = {0}}, 2) == "a cut before layer 0 leaves an empty stage; cuts must increase, from 1 to at most 4");
  CHECK(refusal(Pipeline<>{.cuts = {5}}, 2) == "a cut before layer 5 leaves an empty stage; cuts must increase, from 1 to at most 4");
}

TEST_CASE("split_by_cost minimises the cost of the most expensive stage", "[parallel][cuts]") {
  const auto costs = [](const std::vector<pdp::Index>& layers) {
    nn::Outline outline;
    for (const pdp::Index each : layers) outline.layers.push_back({.parameters = each});
    return outline;
  };
  using Firsts = std::vector<int>;
  CHECK(split_by_cost(costs({1, 1, 1, 1}), 2) == Firsts{0, 2, 4});
  CHECK(split_by_cost(costs({10, 1, 1, 1}), 2) == Firsts{0, 1, 4});
  CHECK(split_by_cost(costs({1, 1, 1, 10}), 2) == Firsts{0, 3, 4});
  CHECK(split_by_cost(costs({4, 4, 4, 4, 9, 4}), 3) == Firsts{0, 2, 4, 6});
  CHECK(split_by_cost(costs({50, 1, 4, 1, 4, 1, 1}), 4) == Firsts{0, 1, 3, 5, 7});
  CHECK(split_by_cost(costs({7}), 1) == Firsts{0, 1});
  nn::Outline convolutions = costs({1, 1, 1, 10});
  convolutions.layers[0].products = 30;  // a few parameters that are used often
  CHECK(split_by_cost(convolutions, 2) == Firsts{0, 1, 4});
  CHECK(split_by_cost(costs({0, 0, 0}), 3) == Firsts{0, 1, 2, 3});
  // Compare with all ways to cut.
  for (int seed = 0; seed < 30; ++seed) {
    std::vector<pdp::Index> layers;
    for (const float value : pdp::testing::normal(7, seed)) layers.push_back(static_cast<pdp::Index>(100 * std::abs(value)));
    // The cost of the most expensive stage, then the sum of squares, which is smallest for even stages.
    const auto worth = [&](const Firsts& firsts) {
      pdp::Index most = 0, squares = 0;
      for (std::size_t s = 0; s + 1 < firsts.size(); ++s) {
        pdp::Index sum = 0;
        for (int layer = firsts[s]; layer < firsts[s + 1]; ++layer) sum += layers[static_cast<std::size_t>(layer)];
        most = std::max(most, sum);
        squares += sum * sum;
      }
      return std::pair{most, squares};
    };
    auto best = worth({0, 1, 2, 7});
    for (int one = 1; one < 6; ++one)
      for (int two = one + 1; two < 7; ++two) best = std::min(best, worth({0, one, two, 7}));
    CHECK(worth(split_by_cost(costs(layers), 3)) == best);
  }
}

}  // namespace pipeline_test
