#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <functional>

#include "catch.hpp"
#include "engine/two_halves.hpp"

namespace verify_test {

namespace nn = pdp::nn;
using namespace pdp::strategy;

namespace {

constexpr nn::Sequential model{nn::Linear{8, 16}, nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 4}};
constexpr nn::Sequential residual_model{nn::Linear{8, 16}, nn::Residual{nn::Sequential{nn::Linear{16, 16}, nn::Relu{}}}, nn::Linear{16, 4}};

template <class Model = decltype(model)>
constexpr nn::Outline outlined(const Model& of = model) {
  return nn::outline(of, pdp::Shape{8});
}
template <Strategy S>
constexpr bool sound(const S& strategy, int ranks) {
  const nn::Outline outline = outlined();
  return static_cast<bool>(verify(outline, plans(strategy, outline, ranks)));
}

// Plans can be verified at compile time, too.
static_assert(sound(Single{}, 1) && sound(Single{.accumulate = 4}, 1));
static_assert(sound(DataParallel{}, 1) && sound(DataParallel{.accumulate = 2, .unit_elements = 1}, 3));
static_assert(sound(Zero{.stage = 1}, 3) && sound(Zero{.stage = 2, .accumulate = 2, .unit_elements = 1}, 2) && sound(Zero{.stage = 3}, 2));
static_assert(sound(TwoHalves{.cut = 2, .micro_batches = 2}, 2));
static_assert(!sound(TwoHalves{.cut = 2}, 3), "no message reaches the layers of the third rank");

std::size_t find(const Instructions& list, Op op, int nth = 0) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].op == op && nth-- == 0) return i;
  throw std::logic_error{std::string{"the plan has no such "} + name(op)};
}
void erase(Instructions& list, Op op, int nth = 0) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(find(list, op, nth))); }
/// Moves an instruction to the place before another one.
void move(Instructions& list, std::size_t from, std::size_t before) {
  const Instruction moved = list[from];
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(before > from ? before - 1 : before), moved);
}
void insert(Instructions& list, std::size_t before, const Instruction& what) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(before), what);
}

using Plans = std::vector<Plan>;
struct Mutant {
  const char* name;
  std::function<void(Plans&)> alter;
  Fault fault;
  const char* words;
};

void check(const Plans& sound, const nn::Outline& outline, const std::vector<Mutant>& mutants) {
  REQUIRE(explain(verify(outline, sound), sound) == "the plan is sound");
  for (const Mutant& mutant : mutants) {
    Plans plans = sound;
    mutant.alter(plans);
    const Verdict verdict = verify(outline, plans);
    INFO(mutant.name << ": " << explain(verdict, plans));
    CHECK_FALSE(verdict);
    CHECK(static_cast<int>(verdict.fault) == static_cast<int>(mutant.fault));
    CHECK_THAT(explain(verdict, plans), StartsWith("the plan cannot run: rank ") && Contains(mutant.words));
  }
}

}  // namespace

TEST_CASE("verify accepts Single, DataParallel and Zero for every world size and accumulation", "[parallel][verify]") {
  const int accumulate = GENERATE(1, 2, 3, 4);
  CHECK(sound(Single{.accumulate = accumulate}, 1));
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (const pdp::Index elements : {0, 1, 300, 1'000'000}) {
      CHECK(sound(DataParallel{.accumulate = accumulate, .unit_elements = elements}, ranks));
      const nn::Outline outline = outlined(residual_model);
      const auto with_residual = plans(DataParallel{.accumulate = accumulate, .unit_elements = elements}, outline, ranks);
      CHECK(explain(verify(outline, with_residual), with_residual) == "the plan is sound");
    }
  for (const int stage : {1, 2, 3})
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (const pdp::Index elements : {0, 1, 300, 1'000'000})
        CHECK(sound(Zero{.stage = stage, .accumulate = accumulate, .unit_elements = elements}, ranks));
  for (const int cut : {1, 2, 3, 4}) CHECK(sound(TwoHalves{.cut = cut, .micro_batches = accumulate}, 2));
}

TEST_CASE("verify reports how many micro-batches a plan holds at once", "[parallel][verify]") {
  const nn::Outline outline = outlined();
  CHECK(verify(outline, plans(Single{.accumulate = 4}, outline, 1)).peak_micro_batches == 1);
  CHECK(verify(outline, plans(DataParallel{.accumulate = 4}, outline, 3)).peak_micro_batches == 1);
  Plans all_forward_first = plans(Single{.accumulate = 3}, outline, 1);
  Instructions& step = all_forward_first[0].step;
  std::ranges::stable_partition(
      step, [](const Instruction& i) { return i.op == Op::count_start || i.op == Op::count_wait || i.op == Op::forward; });
  const Verdict verdict = verify(outline, all_forward_first);
  CHECK(verdict);
  CHECK(verdict.peak_micro_batches == 3);
}

TEST_CASE("verify rejects faulty plans of DataParallel and names the fault", "[parallel][verify]") {
  const nn::Outline outline = outlined();
  check(
      plans(DataParallel{.accumulate = 2, .unit_elements = 1}, outline, 3), outline,
      {{"no rank reduces a unit",
        [](Plans& plans) {
          for (Plan& plan : plans) erase(plan.step, Op::reduce_start, 1), erase(plan.step, Op::reduce_wait, 1);
        },
        Fault::order, "(update unit 1) comes before the gradients are summed over all ranks"},
       {"one rank forgets to reduce a unit",
        [](Plans& plans) { erase(plans[1].step, Op::reduce_start, 1), erase(plans[1].step, Op::reduce_wait, 1); }, Fault::order,
        "rank 1, step instruction"},
       {"a unit is never updated", [](Plans& plans) { erase(plans[2].step, Op::update, 1); }, Fault::forgotten,
        "leaves a unit that is never updated"},
       {"an update before its reduction has ended",
        [](Plans& plans) { move(plans[1].step, find(plans[1].step, Op::update), find(plans[1].step, Op::reduce_wait)); }, Fault::order,
        "rank 1, step instruction"},
       {"the same gradient applied twice",
        [](Plans& plans) { insert(plans[0].step, find(plans[0].step, Op::update, 1), on_unit(Op::update, 0)); }, Fault::order,
        "rank 0, step instruction"},
       {"backward of another micro-batch", [](Plans& plans) { plans[2].step[find(plans[2].step, Op::backward_weight)].micro_batch = 1; },
        Fault::order, "(backward_weight micro-batch 1, layers 4 to 4) needs a gradient that is not yet available"},
       {"the first micro-batch adds to the step before",
        [](Plans& plans) { plans[0].step[find(plans[0].step, Op::backward_weight)].accumulate = true; }, Fault::order,
        "adds to the gradient of an earlier step: the first micro-batch must not accumulate"},
       {"the second micro-batch overwrites the first",
        [](Plans& plans) { plans[1].step[find(plans[1].step, Op::backward_weight, 7)].accumulate = false; }, Fault::order,
        "overwrites the gradient of an earlier micro-batch: all but the first must accumulate"},
       {"backward before the loss",
        [](Plans& plans) { move(plans[0].step, find(plans[0].step, Op::backward_input), find(plans[0].step, Op::loss)); }, Fault::order,
        "(backward_input micro-batch 0, layers 4 to 4) needs a gradient that is not yet available"},
       {"a loss before the number of rows is known",
        [](Plans& plans) { move(plans[0].step, find(plans[0].step, Op::count_wait), find(plans[0].step, Op::backward_input)); },
        Fault::order, "(loss micro-batch 0) needs the number of rows of the step"},
       {"a layer whose gradient is never computed", [](Plans& plans) { erase(plans[0].step, Op::backward_weight, 4); }, Fault::order,
        "adds to the gradient of an earlier step"},
       {"a micro-batch that is taken twice, in place of another",
        [](Plans& plans) {
          Instructions& step = plans[1].step;
          for (std::size_t at = find(step, Op::backward_input, 5); at < step.size(); ++at)
            if (step[at].op == Op::backward_input || step[at].op == Op::backward_weight) step[at].micro_batch = 0;
        },
        Fault::order, "(backward_weight micro-batch 0, layers 4 to 4) takes the gradient of a micro-batch twice"},
       {"a micro-batch that is left out of a unit's gradient", [](Plans& plans) { erase(plans[0].step, Op::backward_weight, 5); },
        Fault::order, "(reduce_start unit 0 in group 0) comes before the gradients of all micro-batches are computed"},
       {"collectives in another order on one rank",
        [](Plans& plans) { move(plans[2].step, find(plans[2].step, Op::totals_start), find(plans[2].step, Op::reduce_start) + 1); },
        Fault::mismatch, "differs from the collective of another rank of its group"},
       {"a gradient changed while it is reduced",
        [](Plans& plans) { insert(plans[1].step, find(plans[1].step, Op::reduce_start) + 1, compute(Op::backward_weight, 1, 4, 5, true)); },
        Fault::order, "(backward_weight micro-batch 1, layers 4 to 4) changes a gradient that is being reduced, or still has to be"},
       {"a reduction that is never waited for", [](Plans& plans) { erase(plans[0].step, Op::reduce_wait, 2); }, Fault::order,
        "rank 0, step instruction"},
       {"totals that are never waited for", [](Plans& plans) { erase(plans[1].step, Op::totals_wait); }, Fault::forgotten,
        "leaves a count, a norm or totals that are never waited for"},
       {"a wait for a call that was never started",
        [](Plans& plans) {
          for (Plan& plan : plans) erase(plan.step, Op::totals_start);
        },
        Fault::order, "(totals_wait in group 0) waits for a call that was never started"},
       {"a loss that the totals do not hold",
        [](Plans& plans) {
          for (Plan& plan : plans) move(plan.step, find(plan.step, Op::totals_start), find(plan.step, Op::loss, 1));
        },
        Fault::order, "(loss micro-batch 1) comes after totals_start"},
       {"a loss that is computed twice",
        [](Plans& plans) { insert(plans[1].step, find(plans[1].step, Op::loss), compute(Op::loss, 0, 5, 5)); }, Fault::order,
        "(loss micro-batch 0) computes the loss of a micro-batch twice"},
       {"one rank makes a collective more",
        [](Plans& plans) {
          for (int rank : {0, 1}) plans[static_cast<std::size_t>(rank)].setup.push_back(on_unit(Op::broadcast, 0, 0, 0));
        },
        Fault::deadlock, "setup instruction 3 (broadcast unit 0 from rank 0 of group 0) waits for ever"},
       {"another root on one rank", [](Plans& plans) { plans[1].setup[1].peer = 2; }, Fault::mismatch,
        "setup instruction 1 (broadcast unit 1"},
       {"a unit that does not exist", [](Plans& plans) { plans[1].setup[1].unit = 9; }, Fault::order,
        "names a unit that the plan does not have"},
       {"a group that does not exist", [](Plans& plans) { plans[1].setup[1].group = 2; }, Fault::order,
        "names a group that the plan does not have"},
       {"a unit reduced twice",
        [](Plans& plans) {
          for (Plan& plan : plans) {
            insert(plan.step, find(plan.step, Op::update), on_unit(Op::reduce_wait, 0));
            insert(plan.step, find(plan.step, Op::reduce_wait, 1), on_unit(Op::reduce_start, 0));
          }
        },
        Fault::order, "(reduce_start unit 0 in group 0) reduces a unit twice"},
       {"a layer that the rank does not hold", [](Plans& plans) { plans[1].units.pop_back(); }, Fault::order, "rank 1"},
       {"an evaluation of a second micro-batch", [](Plans& plans) { plans[0].evaluate[0].micro_batch = 1; }, Fault::order,
        "rank 0, evaluate instruction 0 (forward micro-batch 1, layers 0 to 4) names a micro-batch that the plan does not have"},
       {"a micro-batch that does not exist", [](Plans& plans) { plans[0].evaluate[0].micro_batch = 2; }, Fault::order,
        "rank 0, evaluate instruction 0 (forward micro-batch 2, layers 0 to 4) names a micro-batch that the plan does not have"},
       {"layers that do not exist", [](Plans& plans) { plans[0].evaluate[0].last = 6; }, Fault::order,
        "names layers that the model does not have"}});
}

TEST_CASE("verify rejects faulty plans of Zero and names the fault", "[parallel][verify][zero]") {
  const nn::Outline outline = outlined();
  check(plans(Zero{.stage = 1, .accumulate = 2, .unit_elements = 1}, outline, 3), outline,
        {{"parameters that stay old on the other ranks",
          [](Plans& plans) {
            for (Plan& plan : plans) erase(plan.step, Op::gather_start, 1), erase(plan.step, Op::gather_wait, 1);
          },
          Fault::forgotten, "leaves parameters that are never gathered after their update"},
         {"parameters that are gathered before their update",
          [](Plans& plans) {
            for (Plan& plan : plans) move(plan.step, find(plan.step, Op::gather_start, 1), find(plan.step, Op::update, 1));
          },
          Fault::order, "(update unit 1) changes parameters that are being gathered"},
         {"a gather that is never waited for", [](Plans& plans) { erase(plans[1].step, Op::gather_wait, 2); }, Fault::forgotten,
          "leaves parameters that are gathered and never waited for"},
         {"a gather of an unsharded unit",
          [](Plans& plans) {
            for (Plan& plan : plans)
              for (Unit& unit : plan.units) unit = {unit.first, unit.last, unit.group};
          },
          Fault::order, "gathers a unit that is not sharded"}});
  check(plans(Zero{.stage = 2, .accumulate = 2, .unit_elements = 1}, outline, 3), outline,
        {{"the slices of the second micro-batch overwrite those of the first",
          [](Plans& plans) {
            for (Plan& plan : plans) plan.step[find(plan.step, Op::reduce_start, 4)].accumulate = false;
          },
          Fault::order, "overwrites the gradient of an earlier micro-batch: all reductions but the first must accumulate"},
         {"a reduction that is not ended as it was started",
          [](Plans& plans) {
            for (Plan& plan : plans) plan.step[find(plan.step, Op::reduce_wait, 4)].accumulate = false;
          },
          Fault::order, "has another accumulate flag than its start"},
         {"a gradient written to where another one is on its way",
          [](Plans& plans) {
            Instructions& step = plans[1].step;
            move(step, find(step, Op::reduce_wait), find(step, Op::reduce_start, 2));
          },
          Fault::order, "changes a gradient that is being reduced, or still has to be"},
         {"a gradient overwritten by the next but one before it is reduced",
          [](Plans& plans) {
            for (Plan& plan : plans)
              for (const Op op : {Op::reduce_start, Op::reduce_wait, Op::update, Op::gather_start}) {
                const std::size_t last = find(plan.step, op);
                move(plan.step, last, find(plan.step, Op::reduce_start, op == Op::reduce_start ? 2 : 1));
              }
          },
          Fault::order, "step instruction"},
         {"slices that are not the ranks' own",
          [](Plans& plans) {
            for (Plan& plan : plans) plan.units[1].slice = 0;
          },
          Fault::order, "rank 1, unit 1 of its plan, has a slice number that is not the rank's index in its group"},
         {"more slices than ranks",
          [](Plans& plans) {
            for (Plan& plan : plans) plan.units[1].slices = 4;
          },
          Fault::order, "rank 0, unit 1 of its plan, has another number of slices than its group has ranks"},
         {"slices of an unsharded unit", [](Plans& plans) { plans[2].units[0].sharding = Sharding::none; }, Fault::order,
          "rank 2, unit 0 of its plan, has slices, although it is not sharded"},
         {"units that hold a layer twice", [](Plans& plans) { plans[0].units[0].first = 2; }, Fault::order,
          "rank 0, unit 0 of its plan, shares a layer with another unit of the rank"},
         {"a unit that is sharded in another way on one rank", [](Plans& plans) { plans[1].units[0].sharding = Sharding::state; },
          Fault::mismatch, "differs from the collective of another rank"},
         {"a micro-batch that never goes to slices",
          [](Plans& plans) {
            for (Plan& plan : plans) erase(plan.step, Op::reduce_start, 1), erase(plan.step, Op::reduce_wait, 2);
          },
          Fault::order, "overwrites the gradient of an earlier micro-batch"}});
  check(plans(Zero{.stage = 3, .unit_elements = 1}, outline, 2), outline,
        {{"a forward pass before the parameters are there",
          [](Plans& plans) {
            Instructions& step = plans[0].step;
            move(step, find(step, Op::gather_wait), find(step, Op::forward) + 1);
          },
          Fault::order, "(forward micro-batch 0, layers 0 to 1) needs parameters that are not gathered"},
         {"a unit that is gathered over the one in use",
          [](Plans& plans) {
            Instructions& step = plans[1].step;
            move(step, find(step, Op::gather_start, 2), find(step, Op::forward));
          },
          Fault::order, "needs parameters that are not gathered"},
         {"a broadcast of a slice", [](Plans& plans) { plans[0].setup.push_back(on_unit(Op::broadcast, 0, 0, 0)); }, Fault::order,
          "broadcasts a unit whose parameters are sharded"},
         {"an evaluation without parameters",
          [](Plans& plans) {
            for (Plan& plan : plans) erase(plan.evaluate, Op::gather_start), erase(plan.evaluate, Op::gather_wait);
          },
          Fault::order, "needs parameters that are not gathered"}});
}

TEST_CASE("verify rejects plans that compute or use the gradient norm at the wrong time", "[parallel][verify]") {
  const nn::Outline outline = outlined();
  Plans sound = plans(DataParallel{.accumulate = 2, .unit_elements = 1}, outline, 3);
  for (Plan& plan : sound) plan = with_norm(plan);
  check(sound, outline,
        {{"an update before the norm is known",
          [](Plans& plans) { move(plans[1].step, find(plans[1].step, Op::update), find(plans[1].step, Op::norm_wait)); }, Fault::order,
          "(update unit 0) comes before the norm of the whole gradient is known"},
         {"a norm of gradients that are on their way",
          [](Plans& plans) {
            for (Plan& plan : plans) move(plan.step, find(plan.step, Op::norm_start), find(plan.step, Op::reduce_wait, 2));
          },
          Fault::order, "(norm_start in group 0) comes before the gradients are summed over all ranks"},
         {"a norm that one rank does not take",
          [](Plans& plans) { erase(plans[2].step, Op::norm_start), erase(plans[2].step, Op::norm_wait); }, Fault::order,
          "comes before the norm of the whole gradient is known"},
         {"a wait for a norm before its start",
          [](Plans& plans) {
            for (Plan& plan : plans) plan.step.push_back(collective(Op::norm_start));
            for (Plan& plan : plans) move(plan.step, find(plan.step, Op::norm_wait), find(plan.step, Op::norm_start));
          },
          Fault::order, "(norm_wait in group 0) waits for a call that was never started"},
         {"updates that do not wait for the norm",
          [](Plans& plans) {
            for (Plan& plan : plans) erase(plan.step, Op::norm_wait);
          },
          Fault::order, "(update unit 0) comes before the norm of the whole gradient is known"}});
}

TEST_CASE("verify rejects unmatched messages and shows the cycle of a deadlock", "[parallel][verify]") {
  const nn::Outline outline = outlined();
  const auto activation = [](Op op, int peer) { return message(op, Tensor::activation, 0, 2, peer); };
  check(plans(TwoHalves{.cut = 2, .micro_batches = 2}, outline, 2), outline,
        {{"a send without its receive",
          [&](Plans& plans) {
            plans[0].step.push_back(activation(Op::send_start, 1));
            plans[0].step.push_back(activation(Op::send_wait, 1));
          },
          Fault::deadlock, "(send_wait activation 2 of micro-batch 0 to rank 1 of group 0) waits for ever"},
         {"a receive without its send",
          [&](Plans& plans) {
            plans[1].step.push_back(activation(Op::receive_start, 0));
            plans[1].step.push_back(activation(Op::receive_wait, 0));
          },
          Fault::deadlock, "(receive_wait activation 2 of micro-batch 0 from rank 0 of group 0) waits for ever"},
         {"both ranks receive first",
          [](Plans& plans) {
            Instructions& step = plans[0].step;
            move(step, find(step, Op::receive_start), find(step, Op::send_start));
            move(step, find(step, Op::receive_wait), find(step, Op::send_start));
          },
          Fault::deadlock,
          "rank 0, step instruction 4 (receive_wait gradient 2 of micro-batch 0 from rank 1 of group 0) waits for rank 1; "
          "rank 1, step instruction 3 (receive_wait activation 2 of micro-batch 0 from rank 0 of group 0) waits for rank 0"},
         {"a message that is never waited for", [](Plans& plans) { erase(plans[0].step, Op::send_wait); }, Fault::forgotten,
          "rank 0, step instruction"},
         {"a wait for a message that was never started", [](Plans& plans) { erase(plans[0].step, Op::send_start, 1); }, Fault::order,
          "waits for a message that nothing has started"},
         {"an activation that is used before it has arrived",
          [](Plans& plans) { move(plans[1].step, find(plans[1].step, Op::forward), find(plans[1].step, Op::receive_wait)); }, Fault::order,
          "(forward micro-batch 0, layers 2 to 4) needs an activation that is not yet available"},
         {"an activation that is sent before it is there",
          [](Plans& plans) { move(plans[0].step, find(plans[0].step, Op::send_start), find(plans[0].step, Op::forward)); }, Fault::order,
          "(send_start activation 2 of micro-batch 0 to rank 1 of group 0) sends a value that is not yet available"},
         {"a message to oneself", [](Plans& plans) { plans[1].step[find(plans[1].step, Op::receive_start)].peer = 1; }, Fault::order,
          "is a message of a rank to itself"},
         {"a message to a rank that does not exist", [](Plans& plans) { plans[1].step[find(plans[1].step, Op::receive_start)].peer = 2; },
          Fault::order, "names a rank that the group does not have"}});
}

TEST_CASE("verify shows every wait of a deadlock of five ranks", "[parallel][verify]") {
  constexpr int ranks = 5;
  const nn::Outline outline = outlined();
  Plans plans(ranks, Plan{.units = {{0, outline.size()}}});
  for (int rank = 0; rank < ranks; ++rank)
    for (const Op op : {Op::receive_start, Op::receive_wait})
      plans[static_cast<std::size_t>(rank)].evaluate.push_back(message(op, Tensor::activation, 0, 1, (rank + 1) % ranks));
  const Verdict verdict = verify(outline, plans);
  CHECK(verdict.cycle_length == ranks);
  for (int rank = 0; rank < ranks; ++rank)
    CHECK_THAT(explain(verdict, plans), Contains(pdp::text("rank ", rank, ", evaluate instruction 1 (receive_wait activation 1")) &&
                                            Contains(pdp::text("waits for rank ", (rank + 1) % ranks)));
}

TEST_CASE("verify rejects backward_weight of Residual before its backward_input", "[parallel][verify]") {
  const nn::Outline outline = outlined(residual_model);
  check(plans(Single{}, outline, 1), outline,
        {{"the halves of a residual's backward in the wrong order",
          [](Plans& plans) {
            Instructions& step = plans[0].step;
            move(step, find(step, Op::backward_weight, 1), find(step, Op::backward_input, 1));
          },
          Fault::order, "comes before backward_input of a layer that saves gradients for it"}});
}

TEST_CASE("verify reads the peer of a message as a rank of the message's group", "[parallel][verify]") {
  // Ranks 1 and 3 are a group, in this order; so are 0 and 2.
  const nn::Outline outline = outlined();
  Plans plans;
  for (int rank = 0; rank < 4; ++rank) {
    Plan plan = TwoHalves{.cut = 2}.plan(outline, {rank / 2, 2});
    plan.groups = {{.color = rank % 2, .key = rank}};
    for (Instructions* list : {&plan.step, &plan.evaluate})
      for (Instruction& i : *list)
        if (i.op == Op::send_start || i.op == Op::send_wait || i.op == Op::receive_start || i.op == Op::receive_wait) i.group = 1;
    plans.push_back(plan);
  }
  CHECK(explain(verify(outline, plans), plans) == "the plan is sound");
  for (Plan& plan : plans) plan.groups[0].key *= -1;
  CHECK_FALSE(verify(outline, plans));
}

}  // namespace verify_test
