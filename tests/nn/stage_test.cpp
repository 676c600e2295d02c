#include <pdp/nn/stage.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <pdp/nn/layout.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace stage_test {

namespace nn = pdp::nn;
using gradient_check::Batch;
using nn::Flatten;
using nn::Linear;
using nn::Repeat;
using nn::Residual;
using nn::Sequential;
using nn::Tanh;
using pdp::Index;
using pdp::Shape;
using pdp::cpu::Cpu;

namespace {

/// Returns a model of six layers: 0 a view, 1 and 5 Linear, 2 Tanh, 3 and 4 Residual.
auto some_model() {
  return Sequential{Flatten{}, Linear{6, 5}, Tanh{}, Repeat{2, Residual{Sequential{Linear{5, 3}, Linear{3, 5}}}}, Linear{5, 2}};
}
using Model = decltype(some_model());
using Stage = nn::Stage<nn::LeafTypes<Model>, Cpu, double>;
using Units = std::vector<nn::Run>;

Stage make_stage(const Units& units) { return Stage{some_model(), Shape{2, 3}, units, /*seed*/ 1}; }

}  // namespace

TEST_CASE("Stage stores aligned units one after another, each with the parameters of its layers", "[nn]") {
  const Units units = GENERATE(Units{{0, 6}}, Units{{5, 6}, {3, 5}, {0, 3}}, Units{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
  Stage stage = make_stage(units);
  Index end = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const int unit = static_cast<int>(u);
    Index elements = 0;
    for (int layer = units[u].first; layer < units[u].last; ++layer)
      elements += stage.outline().layers[static_cast<std::size_t>(layer)].parameters;
    CHECK(stage.values(unit).data() == stage.values().data() + end);
    CHECK(static_cast<Index>(stage.values(unit).size()) == elements);
    CHECK(stage.gradients(unit).size() == stage.values(unit).size());
    CHECK(reinterpret_cast<std::uintptr_t>(stage.values(unit).data()) % pdp::alignment == 0);
    end += elements;
  }
  CHECK(static_cast<Index>(stage.values().size()) == end);
}

TEST_CASE("Stage::for_each_parameter visits parameters in model order whatever the order of units", "[nn]") {
  std::vector<std::string> names;
  Stage stage = make_stage({{5, 6}, {3, 5}, {0, 3}});
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<double> values) {
    names.push_back(parameter.full_name());
    const int unit = names.back()[0] == '4' ? 0 : names.back()[0] == '3' ? 1 : 2;
    CHECK(values.data() == stage.values(unit).data() + parameter.offset);
    CHECK(static_cast<Index>(values.size()) == parameter.elements());
  });
  CHECK(names == std::vector<std::string>{"1.weight", "1.bias", "3.0.0.weight", "3.0.0.bias", "3.0.1.weight", "3.0.1.bias", "3.1.0.weight",
                                          "3.1.0.bias", "3.1.1.weight", "3.1.1.bias", "4.weight", "4.bias"});
}

TEST_CASE("Stage holds its slice of each unit of the whole, and units can share a buffer", "[nn]") {
  const int slices = GENERATE(1, 2, 3, 8);
  const bool keeps_values = GENERATE(false, true), keeps_gradients = GENERATE(false, true);
  Stage whole = make_stage({{4, 6}, {1, 4}, {0, 1}});
  for (int slice = 0; slice < slices; ++slice) {
    CAPTURE(slices, slice, keeps_values, keeps_gradients);
    const auto run = [&](int first, int last, int buffer) {
      return nn::Run{first, last, slices, slice, keeps_values, keeps_gradients, buffer};
    };
    Stage stage = make_stage({run(4, 6, 0), run(1, 4, 1), run(0, 1, 0)});
    Index kept = 0;
    for (int unit = 0; unit < 3; ++unit) {
      const auto all = whole.values(unit), own = stage.own_values(unit);
      CHECK(stage.values(unit).size() == own.size() * static_cast<std::size_t>(slices));
      CHECK(stage.gradients(unit).size() == stage.values(unit).size());
      CHECK(stage.own_gradients(unit).size() == own.size());
      CHECK(stage.values(unit).size() >= all.size());
      CHECK(reinterpret_cast<std::uintptr_t>(own.data()) % pdp::alignment == 0);
      const std::size_t first = own.size() * static_cast<std::size_t>(slice);
      for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == (first + i < all.size() ? all[first + i] : 0));
      if (keeps_values) CHECK(own.data() == stage.values(unit).data() + first);
      if (keeps_gradients) CHECK(stage.own_gradients(unit).data() == stage.gradients(unit).data() + first);
      kept += static_cast<Index>(keeps_values ? stage.values(unit).size() : own.size());
    }
    CHECK(static_cast<Index>(stage.values().size()) == kept);
    if (!keeps_values) CHECK(stage.values(0).data() != stage.values(1).data());
    if (!keeps_values) CHECK(stage.values(0).data() == stage.values(2).data());
  }
}

TEST_CASE("Stage without gradients computes the same outputs and has memory for values only", "[nn]") {
  const nn::Run all{.last = 6}, without{.last = 6, .has_gradients = false};
  Stage plain = make_stage({all}), predicts = make_stage({without});
  CHECK(nn::layout(plain.outline(), {all}).gradients.elements() > 0);
  CHECK(nn::layout(plain.outline(), {without}).gradients.elements() == 0);
  CHECK(nn::layout(plain.outline(), {without}).values.elements() == nn::layout(plain.outline(), {all}).values.elements());
  Batch<Model> expected{plain, 5}, found{predicts, 5};
  expected.forward();
  found.forward();
  CHECK(found.output() == expected.output());
}

TEST_CASE("Stage uses lent memory for units that it keeps whole", "[nn]") {
  const Units units{{4, 6, 2, 1}, {1, 4}, {0, 1}};
  Stage plain = make_stage(units);
  std::vector<double> lent(plain.values(0).size() + plain.gradients(0).size() + plain.gradients(1).size());
  const std::span all{lent};
  const auto values = all.first(plain.values(0).size()), gradients = all.subspan(values.size(), values.size()),
             more = all.last(plain.gradients(1).size());
  Stage stage{some_model(), Shape{2, 3}, units, /*seed*/ 1, {}, {.values = {values, values.first(0)}, .gradients = {gradients, more}}};
  CHECK(stage.values(0).data() == values.data());
  CHECK(stage.own_values(0).data() == values.data() + values.size() / 2);
  CHECK(stage.gradients(0).data() == gradients.data());
  CHECK(stage.own_gradients(0).data() == gradients.data() + gradients.size() / 2);
  CHECK(stage.gradients(1).data() == more.data());
  CHECK(stage.values().size() == plain.values(1).size() + plain.values(2).size());
  CHECK(stage.values(1).data() == stage.values().data());
  for (const int unit : {0, 1, 2}) CHECK(std::ranges::equal(stage.values(unit), plain.values(unit)));
}

TEST_CASE("Stage of some layers holds only their parameters", "[nn]") {
  Stage stage = make_stage({{3, 4}});
  std::vector<std::string> names;
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<double>) { names.push_back(parameter.full_name()); });
  CHECK(names == std::vector<std::string>{"3.0.0.weight", "3.0.0.bias", "3.0.1.weight", "3.0.1.bias"});
  CHECK(static_cast<Index>(stage.values().size()) == stage.outline().layers[3].parameters);
}

TEST_CASE("Stage computes the same bits in one call and in several calls with other units", "[nn]") {
  Stage whole_stage = make_stage({{0, 6}}), cut_stage = make_stage({{4, 6}, {2, 4}, {0, 2}});
  Batch<Model> whole{whole_stage, 5}, cut{cut_stage, 5};
  whole.forward();
  for (const nn::Run& run : Units{{0, 1}, {1, 4}, {4, 4}, {4, 6}}) cut_stage.forward(cut.slot(), run.first, run.last);
  CHECK(whole.output() == cut.output());

  whole.backward(false);
  cut.set_gradient();
  for (const auto& [first, last] : std::vector<std::pair<int, int>>{{4, 6}, {2, 4}, {0, 2}}) {
    cut_stage.backward_input(cut.slot(), first, last);
    cut_stage.backward_weight(cut.slot(), first, last, false);
  }
  std::vector<double> expected, found;
  whole_stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<double> values) {
    const auto from = whole_stage.gradients(0).subspan(static_cast<std::size_t>(parameter.offset), values.size());
    expected.insert(expected.end(), from.begin(), from.end());
  });
  cut_stage.for_each_parameter([&](const nn::Parameter&, std::span<double> values) {
    const double* from = cut_stage.gradients(0).data() + (values.data() - cut_stage.values().data());  // both have the same layout
    found.insert(found.end(), from, from + values.size());
  });
  CHECK(found == expected);
}

TEST_CASE("Stage::backward_weight gives equal gradients if it runs after all of backward_input", "[nn]") {
  Stage stage = make_stage({{0, 6}}), late_stage = make_stage({{0, 6}});
  Batch<Model> batch{stage, 5}, late{late_stage, 5};
  batch.forward();
  late.forward();
  batch.set_gradient();
  late.set_gradient();
  for (int layer = 5; layer >= 0; --layer) {
    stage.backward_input(batch.slot(), layer, layer + 1);
    stage.backward_weight(batch.slot(), layer, layer + 1, false);
  }
  late_stage.backward_input(late.slot(), 0, 6);
  for (int layer = 0; layer < 6; ++layer) late_stage.backward_weight(late.slot(), layer, layer + 1, false);
  CHECK(gradient_check::parameter_gradients(stage) == gradient_check::parameter_gradients(late_stage));
}

TEST_CASE("Stage keeps two batches in flight apart and adds up their gradients", "[nn]") {
  Stage stage = make_stage({{0, 6}});
  Batch<Model> one{stage, 5}, two{stage, 3};
  std::ranges::fill(two.input(), 0.25);
  const auto alone = [&](Batch<Model>& batch) {
    batch.forward();
    batch.backward(false);
    return gradient_check::parameter_gradients(stage);
  };
  const auto of_one = alone(one), of_two = alone(two);
  std::vector<double> sum;
  for (std::size_t i = 0; i < of_one.size(); ++i) sum.push_back(of_one[i] + of_two[i]);

  one.forward();
  two.forward();
  one.backward(false);
  two.backward(true);
  CHECK(support::difference(gradient_check::parameter_gradients(stage), sum) < 1e-12);
}

TEST_CASE("Stage::backward_input skips gradients that no parameter needs", "[nn]") {
  nn::Stage<nn::LeafTypes<Sequential<Tanh, Linear, Tanh>>, Cpu, double> stage{
      Sequential{Tanh{}, Linear{4, 3}, Tanh{}}, Shape{4}, {{0, 3}}, 1};
  nn::Slot<double> slot{3};
  slot.rows = 2;
  auto activations = support::normal<double>(2 * (4 + 4 + 3 + 3), 1);
  std::vector<double> gradients(2 * 3 + 2 * 3);
  slot.activations = {activations.data(), activations.data() + 8, activations.data() + 16, activations.data() + 22};
  slot.gradients = {nullptr, nullptr, gradients.data(), gradients.data() + 6};
  std::ranges::fill(std::span{gradients}.last(6), 1.0);
  stage.forward(slot, 0, 3);
  stage.backward_input(slot, 0, 3);
  stage.backward_weight(slot, 0, 3, false);
  // Boundaries 0 and 1 have no memory, so writing their gradients would crash.
  const std::span output = std::span{activations}.last(6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(gradients[i] == Approx(1 - output[i] * output[i]));
}

TEST_CASE("Stage leaves zero gradients for a batch without rows, or adds nothing", "[nn]") {
  Stage stage = make_stage({{0, 6}});
  Batch<Model> some{stage, 5}, none{stage, 0};
  some.forward();
  some.backward(false);
  const auto before = gradient_check::parameter_gradients(stage);
  none.forward();
  none.backward(true);
  CHECK(gradient_check::parameter_gradients(stage) == before);
  none.backward(false);
  CHECK(gradient_check::parameter_gradients(stage) == std::vector<double>(before.size(), 0.0));
}

TEST_CASE("Stage rejects a sample shape that its model does not accept", "[nn]") {
  const auto message = support::message_of<pdp::ShapeError>([] { Stage{some_model(), Shape{7}, {{0, 6}}, 1}; });
  CHECK_THAT(message.value(), Contains("layer 1 (Linear)") && Contains("expects 6") && Contains("its input has 7"));
}

}  // namespace stage_test
