#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/verify/verify.hpp>

#include "catch.hpp"

namespace strategy_test {

namespace nn = pdp::nn;
using namespace pdp::strategy;

namespace {

constexpr nn::Sequential model{nn::Linear{8, 16}, nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 4}};
const nn::Outline outlined = nn::outline(model, pdp::Shape{8});

std::string words(const Instructions& list) {
  std::string joined;
  for (const Instruction& i : list) joined += describe(i) + (i.accumulate ? " (adds)\n" : "\n");
  return joined;
}

}  // namespace

TEST_CASE("Single plans all micro-batches one after another, without messages", "[parallel][plan]") {
  constexpr nn::Sequential two{nn::Linear{2, 3}, nn::Relu{}};
  const Plan plan = Single{.accumulate = 2}.plan(nn::outline(two, pdp::Shape{2}), {});
  CHECK(plan.share == pdp::data::Shard{0, 1});
  CHECK(plan.micro_batches == 2);
  REQUIRE(plan.units.size() == 1);
  CHECK(plan.setup.empty());
  CHECK(words(plan.step) ==
        "count_start in group 0\n"
        "count_wait in group 0\n"
        "forward micro-batch 0, layers 0 to 1\n"
        "loss micro-batch 0\n"
        "backward_input micro-batch 0, layers 1 to 1\n"
        "backward_weight micro-batch 0, layers 1 to 1\n"
        "backward_input micro-batch 0, layers 0 to 0\n"
        "backward_weight micro-batch 0, layers 0 to 0\n"
        "forward micro-batch 1, layers 0 to 1\n"
        "loss micro-batch 1\n"
        "backward_input micro-batch 1, layers 1 to 1\n"
        "backward_weight micro-batch 1, layers 1 to 1 (adds)\n"
        "backward_input micro-batch 1, layers 0 to 0\n"
        "backward_weight micro-batch 1, layers 0 to 0 (adds)\n"
        "totals_start in group 0\n"
        "update unit 0\n"
        "totals_wait in group 0\n");
  CHECK(words(plan.evaluate) == "forward micro-batch 0, layers 0 to 1\nloss micro-batch 0\n");
}

TEST_CASE("DataParallel reduces each unit while backward continues", "[parallel][plan]") {
  const Plan plan = DataParallel{.unit_elements = 1}.plan(outlined, {1, 4});
  CHECK(plan.share == pdp::data::Shard{1, 4});
  REQUIRE(plan.units.size() == 3);
  CHECK((plan.units[0].first == 4 && plan.units[0].last == 5));
  CHECK((plan.units[1].first == 2 && plan.units[1].last == 4));
  CHECK((plan.units[2].first == 0 && plan.units[2].last == 2));
  CHECK(words(plan.setup) ==
        "broadcast unit 0 from rank 0 of group 0\nbroadcast unit 1 from rank 0 of group 0\nbroadcast unit 2 from rank 0 of group 0\n");
  CHECK_THAT(words(plan.step), StartsWith("count_start in group 0\nforward micro-batch 0, layers 0 to 4\ncount_wait in group 0\n"));
  CHECK_THAT(words(plan.step), Contains("backward_weight micro-batch 0, layers 4 to 4\n"
                                        "reduce_start unit 0 in group 0\n"
                                        "backward_input micro-batch 0, layers 3 to 3\n"));
  CHECK_THAT(words(plan.step), EndsWith("backward_weight micro-batch 0, layers 0 to 0\n"
                                        "reduce_start unit 2 in group 0\n"
                                        "reduce_wait unit 0 in group 0\n"
                                        "update unit 0\n"
                                        "reduce_wait unit 1 in group 0\n"
                                        "update unit 1\n"
                                        "reduce_wait unit 2 in group 0\n"
                                        "update unit 2\n"
                                        "totals_wait in group 0\n"));
}

TEST_CASE("DataParallel reduces each unit once a step, in the last micro-batch", "[parallel][plan]") {
  const Plan plan = DataParallel{.accumulate = 3, .unit_elements = 1}.plan(outlined, {0, 2});
  int reductions = 0, losses = 0, losses_at_reduction = -1;
  for (const Instruction& i : plan.step) {
    losses += i.op == Op::loss ? 1 : 0;
    if (i.op != Op::reduce_start) continue;
    ++reductions;
    losses_at_reduction = losses;
  }
  CHECK(reductions == 3);
  CHECK(losses == 3);
  CHECK(losses_at_reduction == 3);
}

TEST_CASE("units_by_size cuts layers into units of at least the given size, from the last to the first", "[parallel][plan]") {
  const auto cut = [](pdp::Index elements) {
    std::vector<std::pair<int, int>> runs;
    for (const Unit& unit : units_by_size(outlined, 0, outlined.size(), elements)) runs.emplace_back(unit.first, unit.last);
    return runs;
  };
  using Runs = std::vector<std::pair<int, int>>;
  CHECK(cut(1'000'000) == Runs{{0, 5}});
  CHECK(cut(100) == Runs{{2, 5}, {0, 2}});
  CHECK(cut(1) == Runs{{4, 5}, {2, 4}, {0, 2}});
  CHECK(cut(0) == Runs{{4, 5}, {3, 4}, {2, 3}, {1, 2}, {0, 1}});
  const auto early = DataParallel{.unit_elements = 1'000'000, .first_unit_elements = 1}.plan(outlined, {0, 2}).units;
  REQUIRE(early.size() == 2);  // the last layer is reduced while backward runs through the others
  CHECK(early[0].first == 4);
  CHECK(early[1].first == 0);
  for (const pdp::Index elements : {0, 1, 50, 100, 300, 500}) {
    int end = outlined.size();
    for (const auto& [first, last] : cut(elements)) {
      CHECK(last == end);
      CHECK(first < last);
      end = first;
    }
    CHECK(end == 0);
  }
}

TEST_CASE("Single rejects several ranks, and Single and DataParallel reject accumulate below 1", "[parallel][plan]") {
  CHECK_THROWS_WITH((Single{}.plan(outlined, {0, 2})),
                    Contains("Single is for one rank, but the world has 2") && Contains("start one rank"));
  CHECK_THROWS_AS((Single{}.plan(outlined, {1, 2})), pdp::ConfigError);
  CHECK_THROWS_WITH((Single{.accumulate = 0}.plan(outlined, {})), Contains("accumulate = 0 was given; it takes 1 to 32767 micro-batches"));
  CHECK_THROWS_AS((DataParallel{.accumulate = -1}.plan(outlined, {0, 2})), pdp::ConfigError);
}

TEST_CASE("Zero in stage 2 ends the reduction of a unit before the next but one uses its buffer", "[parallel][plan][zero]") {
  const Plan plan = Zero{.stage = 2, .unit_elements = 1}.plan(outlined, {1, 4});
  CHECK(plan.share == pdp::data::Shard{1, 4});
  REQUIRE(plan.units.size() == 3);
  for (int u = 0; u < 3; ++u) {
    const Unit& unit = plan.units[static_cast<std::size_t>(u)];
    CHECK((unit.sharding == Sharding::gradients && unit.slices == 4 && unit.slice == 1 && unit.buffer == u % 2));
  }
  CHECK_THAT(words(plan.step), EndsWith("reduce_start unit 1 in group 0\n"
                                        "reduce_wait unit 0 in group 0\n"
                                        "update unit 0\n"
                                        "gather_start unit 0 in group 0\n"
                                        "backward_input micro-batch 0, layers 1 to 1\n"
                                        "backward_weight micro-batch 0, layers 1 to 1\n"
                                        "backward_input micro-batch 0, layers 0 to 0\n"
                                        "backward_weight micro-batch 0, layers 0 to 0\n"
                                        "reduce_start unit 2 in group 0\n"
                                        "reduce_wait unit 1 in group 0\n"
                                        "update unit 1\n"
                                        "gather_start unit 1 in group 0\n"
                                        "reduce_wait unit 2 in group 0\n"
                                        "update unit 2\n"
                                        "gather_start unit 2 in group 0\n"
                                        "gather_wait unit 0 in group 0\n"
                                        "gather_wait unit 1 in group 0\n"
                                        "gather_wait unit 2 in group 0\n"
                                        "totals_wait in group 0\n"));
}

TEST_CASE("Zero in stage 3 gathers the next unit while it computes with the current one", "[parallel][plan][zero]") {
  const Plan plan = Zero{.stage = 3, .unit_elements = 1}.plan(outlined, {0, 2});
  CHECK(plan.setup.empty());
  CHECK_THAT(words(plan.step), StartsWith("count_start in group 0\n"
                                          "gather_start unit 2 in group 0\n"
                                          "gather_start unit 1 in group 0\n"
                                          "gather_wait unit 2 in group 0\n"
                                          "forward micro-batch 0, layers 0 to 1\n"
                                          "gather_start unit 0 in group 0\n"
                                          "gather_wait unit 1 in group 0\n"
                                          "forward micro-batch 0, layers 2 to 3\n"
                                          "gather_wait unit 0 in group 0\n"
                                          "forward micro-batch 0, layers 4 to 4\n"
                                          "count_wait in group 0\n"
                                          "loss micro-batch 0\n"
                                          "totals_start in group 0\n"
                                          "backward_input micro-batch 0, layers 4 to 4\n"));
  CHECK_THAT(words(plan.step), Contains("reduce_start unit 0 in group 0\n"
                                        "gather_start unit 2 in group 0\n"
                                        "backward_input micro-batch 0, layers 3 to 3\n"));
}

TEST_CASE("Zero rejects stages outside 1 to 3 and accumulate below 1", "[parallel][plan][zero][bad input]") {
  CHECK_THROWS_WITH(Zero{.stage = 0}.plan(outlined, {}), "stage = 0 was given; ZeRO has the stages 1, 2 and 3");
  CHECK_THROWS_WITH(Zero{.stage = 4}.plan(outlined, {}), "stage = 4 was given; ZeRO has the stages 1, 2 and 3");
  CHECK_THROWS_WITH((Zero{.accumulate = 0}.plan(outlined, {})), Contains("accumulate = 0"));
}

}  // namespace strategy_test
