#include <pdp/plan/instruction.hpp>

#include "catch.hpp"

using namespace pdp::plan;

TEST_CASE("describe shows the operation, the operands and the peer of an instruction", "[parallel]") {
  CHECK(describe(compute(Op::forward, 2, 0, 4)) == "forward micro-batch 2, layers 0 to 3");
  CHECK(describe(compute(Op::backward_input, 0, 3, 4)) == "backward_input micro-batch 0, layers 3 to 3");
  CHECK(describe(compute(Op::backward_weight, 1, 3, 4, true)) == "backward_weight micro-batch 1, layers 3 to 3");
  CHECK(describe(compute(Op::loss, 5, 4, 4)) == "loss micro-batch 5");
  CHECK(describe(message(Op::send_start, Tensor::activation, 2, 3, 1)) == "send_start activation 3 of micro-batch 2 to rank 1 of group 0");
  CHECK(describe(message(Op::receive_wait, Tensor::gradient, 0, 3, 4, 2)) ==
        "receive_wait gradient 3 of micro-batch 0 from rank 4 of group 2");
  CHECK(describe(on_unit(Op::reduce_start, 1)) == "reduce_start unit 1 in group 0");
  CHECK(describe(on_unit(Op::broadcast, 1, 0, 3)) == "broadcast unit 1 from rank 3 of group 0");
  CHECK(describe(on_unit(Op::update, 7)) == "update unit 7");
  CHECK(describe(collective(Op::totals_wait, 1)) == "totals_wait in group 1");
}

TEST_CASE("name returns a name for every Op, and describe begins with it", "[parallel]") {
  for (int op = 0; op <= static_cast<int>(Op::update); ++op) {
    const Instruction instruction{.op = static_cast<Op>(op)};
    CHECK_THAT(name(instruction.op), !Contains("unknown"));
    CHECK_THAT(describe(instruction), StartsWith(name(instruction.op)));
  }
  CHECK(std::string{name(static_cast<Op>(200))} == "an unknown instruction");
}

TEST_CASE("start_of and wait_of map between the halves of a call and keep all other operations", "[parallel]") {
  CHECK(start_of(Op::send_wait) == Op::send_start);
  CHECK(wait_of(Op::reduce_start) == Op::reduce_wait);
  for (const OpInfo& each : ops) {
    CAPTURE(each.name);
    CHECK(start_of(wait_of(each.op)) == (each.half == Half::wait ? start_of(each.op) : each.op));
    CHECK(is_call(start_of(each.op)) == is_call(each.op));
    if (each.half == Half::none) CHECK((start_of(each.op) == each.op && wait_of(each.op) == each.op));
  }
  CHECK(wait_of(message(Op::receive_start, Tensor::gradient, 1, 2, 3)) == message(Op::receive_wait, Tensor::gradient, 1, 2, 3));
}
