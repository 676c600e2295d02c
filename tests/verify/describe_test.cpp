#include <pdp/nn/activation.hpp>
#include <pdp/nn/layer_info.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/verify/comparison.hpp>
#include <pdp/verify/describe.hpp>

#include "catch.hpp"

namespace describe_test {

namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index;

namespace {

/// Sixteen layers of equal cost, with 64 x 64 parameters each.
const nn::Repeat model{16, nn::Linear{64, 64, false}};
const nn::Outline outlined = nn::outline(model, pdp::Shape{64});
constexpr Index layer_bytes = 64 * 64 * 4, model_bytes = 16 * layer_bytes, boundary_bytes = 64 * 4;
constexpr std::size_t of_adam = 2;

template <Strategy S>
Description describe(const S& strategy, int ranks, Index batch = 32, const pdp::ElementBytes& bytes = pdp::element_bytes<pdp::Float32>) {
  return pdp::plan::describe(outlined, plans(strategy, outlined, ranks), {.global_batch = batch, .state_fields = of_adam, .bytes = bytes});
}

}  // namespace

TEST_CASE("describe counts the memory and the bytes sent of each DataParallel rank", "[parallel][describe]") {
  for (const int ranks : {1, 2, 4}) {
    const Description found = describe(DataParallel{.unit_elements = 1}, ranks);
    CHECK(found.parameters == model_bytes / 4);
    REQUIRE(found.ranks.size() == static_cast<std::size_t>(ranks));
    for (const RankUse& use : found.ranks) {
      CHECK(use.layers == std::vector<std::pair<int, int>>{{0, 16}});
      CHECK(use.rows == 32 / ranks);
      CHECK(use.parameters == model_bytes);
      CHECK(use.gradients == model_bytes);
      CHECK(use.optimizer_state == 2 * model_bytes);
      CHECK(use.checkpoint == 3 * model_bytes / ranks);  // the ranks divide what all of them hold
      CHECK(use.calls == (ranks == 1 ? 0 : 17));         // 16 units and the totals
      CHECK(use.sent == 16 * (layer_bytes * 2 * (ranks - 1) / ranks));
      CHECK(use.idle == 0);
      CHECK(use.activations >= 16 * boundary_bytes * use.rows);  // the activation of each layer that backward needs
      CHECK(use.activations <= 20 * boundary_bytes * use.rows);
    }
  }
  CHECK(describe(Single{}, 1).ranks[0].activations > 3 * describe(Single{.accumulate = 4}, 1).ranks[0].activations);
}

TEST_CASE("describe counts the memory and the bytes sent of Zero in each stage", "[parallel][describe][zero]") {
  constexpr Index slice = model_bytes / 4, two_layers = 2 * layer_bytes;
  const auto use = [](int stage) { return describe(Zero{.stage = stage, .unit_elements = 1}, 4).ranks[1]; };
  CHECK((use(1).parameters == model_bytes && use(1).gradients == model_bytes));
  CHECK((use(2).parameters == model_bytes && use(2).gradients == slice + two_layers));
  CHECK((use(3).parameters == slice + two_layers && use(3).gradients == slice + two_layers));
  for (const int stage : {1, 2, 3}) CHECK((use(stage).optimizer_state == 2 * slice && use(stage).checkpoint == 3 * slice));
  // Two more slices, each of one layer, hold sums that are then added to those of earlier micro-batches.
  CHECK(describe(Zero{.stage = 2, .accumulate = 2, .unit_elements = 1}, 4).ranks[1].gradients == slice + two_layers + two_layers / 4);
  // Gradients are reduced to slices, and parameters are gathered. Stage 3 gathers most parameters twice, those of the last layers once.
  CHECK(use(1).sent == 16 * (2 * layer_bytes * 3 / 4));
  CHECK(use(3).sent > use(1).sent);
}

TEST_CASE("describe computes the pipeline bubble of each schedule", "[parallel][describe][pipeline]") {
  const auto bubble = [](const auto& strategy, int ranks) { return describe(strategy, ranks, 64).bubble(); };
  for (const int ranks : {1, 2, 4})
    for (const int m : {1, 2, 4, 8}) {
      const double expected = static_cast<double>(ranks - 1) / (m + ranks - 1);
      CAPTURE(ranks, m);
      // The first layer passes no gradient on, so its rank ends a little earlier.
      CHECK(bubble(Pipeline<GPipe>{.micro_batches = m}, ranks) == Approx(expected).margin(0.03));
      CHECK(bubble(Pipeline<OneForwardOneBackward>{.micro_batches = m}, ranks) == Approx(expected).margin(0.03));
      if (m >= 2 * ranks && ranks > 1) CHECK(bubble(Pipeline<ZeroBubble>{.micro_batches = m}, ranks) < 0.6 * expected);
    }
  CHECK(bubble(Pipeline<Interleaved>{.micro_batches = 8, .schedule = {.chunks = 2}}, 4) <
        0.7 * bubble(Pipeline<OneForwardOneBackward>{.micro_batches = 8}, 4));
}

TEST_CASE("describe lists the layers of each Pipeline rank and counts its memory and bytes sent", "[parallel][describe][pipeline]") {
  const Description found = describe(Pipeline<OneForwardOneBackward>{.micro_batches = 4}, 4);
  for (int rank = 0; rank < 4; ++rank) {
    const RankUse& use = found.ranks[static_cast<std::size_t>(rank)];
    CHECK(use.layers == std::vector<std::pair<int, int>>{{4 * rank, 4 * rank + 4}});
    CHECK(use.parameters == model_bytes / 4);
    CHECK(use.checkpoint == 3 * model_bytes / 4);
    const int neighbours = rank == 0 || rank == 3 ? 1 : 2;
    CHECK(use.sent == neighbours * 4 * (8 * boundary_bytes));  // one boundary for each neighbour and micro-batch of 8 rows
    CHECK(use.rows == 32);
  }
  // The last micro-batches are short or empty: 5 rows make 2, 2, 1 and 0.
  CHECK(describe(Pipeline<OneForwardOneBackward>{.micro_batches = 4}, 2, 5).ranks[0].sent == 5 * boundary_bytes);
  // A rank holds more micro-batches the further its stage is from the end.
  CHECK(found.ranks[0].activations > 2 * found.ranks[3].activations);
  // With recompute a rank holds less and computes more.
  const Description again = describe(Pipeline<OneForwardOneBackward>{.micro_batches = 4, .recompute = true}, 4);
  CHECK(again.ranks[0].activations < found.ranks[0].activations);
  CHECK(again.ranks[3].activations == found.ranks[3].activations);
  CHECK(again.ranks[3].idle > found.ranks[3].idle);
  const Description chunks = describe(Pipeline<Interleaved>{.micro_batches = 4, .schedule = {.chunks = 2}}, 2);
  CHECK(chunks.ranks[0].layers == std::vector<std::pair<int, int>>{{0, 4}, {8, 12}});
}

TEST_CASE("describe counts bytes by the element types of each precision", "[parallel][describe]") {
  const auto use = [](const auto& strategy, int ranks, const pdp::ElementBytes& bytes) {
    return describe(strategy, ranks, 32, bytes).ranks[0];
  };
  constexpr pdp::ElementBytes floats = pdp::element_bytes<pdp::Float32>, doubles = pdp::element_bytes<pdp::Float64>,
                              mixed = pdp::element_bytes<pdp::MixedBfloat16>, rounded = pdp::element_bytes<pdp::Bfloat16Gradients>;
  const Zero zero{.stage = 3, .unit_elements = 1};
  const Pipeline<> pipeline{.micro_batches = 4};
  const RankUse of_floats = use(zero, 4, floats), of_doubles = use(zero, 4, doubles), of_mixed = use(zero, 4, mixed),
                of_rounded = use(zero, 4, rounded);
  constexpr Index slice = model_bytes / 4, two_layers = 2 * layer_bytes;

  CHECK(of_doubles.parameters == 2 * of_floats.parameters);
  CHECK(of_doubles.gradients == 2 * of_floats.gradients);
  CHECK(of_doubles.optimizer_state == 2 * of_floats.optimizer_state);
  CHECK(of_doubles.activations == 2 * of_floats.activations);
  CHECK(of_doubles.sent == 2 * of_floats.sent);
  CHECK(use(pipeline, 2, doubles).sent == 2 * use(pipeline, 2, floats).sent);

  CHECK(of_mixed.parameters == of_floats.parameters / 2 + slice);  // plus masters of the slice that this rank updates
  CHECK(of_mixed.gradients == of_floats.gradients);
  CHECK(of_mixed.optimizer_state == of_floats.optimizer_state);
  CHECK(2 * of_mixed.activations == of_floats.activations);
  CHECK(use(pipeline, 2, mixed).sent == use(pipeline, 2, floats).sent / 2);
  CHECK(use(DataParallel{}, 2, mixed).parameters == model_bytes / 2 + model_bytes);
  CHECK(use(DataParallel{}, 2, mixed).sent == use(DataParallel{}, 2, floats).sent);

  CHECK(of_rounded.parameters == of_floats.parameters);
  CHECK(of_rounded.gradients == of_floats.gradients + (two_layers + two_layers / 4) / 2);  // 2-byte buffers and sums of slices
  const Index gathered = of_floats.sent - 16 * (layer_bytes * 3 / 4);
  CHECK(of_rounded.sent == gathered + 16 * (layer_bytes * 3 / 4) / 2);
  CHECK(use(DataParallel{}, 2, rounded).sent == use(DataParallel{}, 2, floats).sent / 2);
}

TEST_CASE("describe prints a table, and throws PlanError for plans that cannot run", "[parallel][describe]") {
  const nn::Sequential small{nn::Linear{8, 16}, nn::Linear{16, 4}};
  const nn::Outline outline = nn::outline(small, pdp::Shape{8});
  auto spread = plans(Pipeline<>{.micro_batches = 2}, outline, 2);
  const std::string table = pdp::plan::describe(outline, spread, {.global_batch = 16}).text();
  CHECK_THAT(table, StartsWith(pdp::text(outline.elements(0, 2), " parameters, 16 samples a step, 2 ranks, bubble ")) &&
                        Contains("\n rank  layers  samples  parameters  gradients  optimizer  activations   memory  calls ") &&
                        Contains("idle  checkpoint\n    0       0 ") && Contains("\ntotal  "));
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK_THAT(pdp::plan::describe(outline, plans(Single{}, outline, 1), {.global_batch = 5, .state_fields = 2}).text(),
             Contains(" 1 rank, bubble 0 %\nrank ") && Contains("0 to 1") && !Contains("total"));
  spread[0].step.pop_back();
  CHECK_THROWS_AS(pdp::plan::describe(outline, spread, {.global_batch = 16}), pdp::PlanError);
}

TEST_CASE("describe counts parameters without padding and names the layers of each stage if it knows the layers", "[parallel][describe]") {
  const nn::Sequential odd{nn::Linear{3, 5}, nn::Relu{}, nn::Sequential{nn::Linear{5, 7}, nn::Linear{7, 1, false}}};
  const nn::Outline outline = nn::outline(odd, pdp::Shape{3});
  const auto stages = plans(Pipeline<>{.micro_batches = 2, .cuts = {2}}, outline, 2);
  const Description found = pdp::plan::describe(outline, stages, {.global_batch = 6}, nn::layer_infos(odd));
  CHECK(found.parameters == 3 * 5 + 5 + 5 * 7 + 7 + 7);
  CHECK(pdp::plan::describe(outline, stages, {.global_batch = 6}).parameters > found.parameters);
  CHECK_THAT(found.text(), StartsWith("69 parameters, ") && Contains("\nlayers 0 to 1: 20 parameters: 0 Linear, 1 Relu\n") &&
                               EndsWith("\nlayers 2 to 3: 49 parameters: 2.0 Linear, 2.1 Linear"));
  auto layers = found.layers;
  layers[2].buffers = 6;
  layers[3].buffers = 1;
  CHECK_THAT((Description{.ranks = found.ranks, .device = {}, .layers = layers}.text()),
             EndsWith("\nlayers 2 to 3: 49 parameters (7 in buffers): 2.0 Linear, 2.1 Linear"));
  // Ranks that hold the same layers have one line. A long list is shortened.
  const Description deep = pdp::plan::describe(outlined, plans(DataParallel{}, outlined, 3), {.global_batch = 6}, nn::layer_infos(model));
  CHECK_THAT(deep.text(), EndsWith("\nlayers 0 to 15: 65536 parameters: 0 Linear, 1 Linear, 2 Linear, 3 Linear, 4 Linear, 5 Linear, "
                                   "6 Linear, ..., 15 Linear"));
}

TEST_CASE("describe sums memory and messages over all ranks", "[parallel][describe]") {
  const Description found = describe(Pipeline<>{.micro_batches = 4}, 4);
  const RankUse total = found.total();
  CHECK(total.parameters == model_bytes);
  CHECK(total.gradients == model_bytes);
  CHECK(total.optimizer_state == 2 * model_bytes);
  CHECK(total.checkpoint == 3 * model_bytes);
  CHECK(total.sent == 6 * 32 * boundary_bytes);
  Index memory = 0, calls = 0;
  for (const RankUse& use : found.ranks) {
    memory += use.parameters + use.gradients + use.optimizer_state + use.activations;
    calls += use.calls;
  }
  CHECK(total.memory() == memory);
  CHECK(total.calls == calls);
  CHECK(total.mapped == 0);
  CHECK_THAT(found.text(), !Contains("resident"));
}

TEST_CASE("describe tells memory that ranks map from memory that they hold", "[parallel][describe]") {
  const auto shared = [](int stage) {
    const Zero zero{.stage = stage, .unit_elements = 1};
    return pdp::plan::describe(outlined, plans(zero, outlined, 4), {.global_batch = 8, .state_fields = of_adam, .common_memory = true});
  };
  // A rank reads a quarter of the gradients of three others, and writes a quarter of their parameters.
  for (const RankUse& use : shared(1).ranks) CHECK(use.mapped == 2 * 3 * model_bytes / 4);
  for (const RankUse& use : shared(2).ranks) CHECK(use.mapped == 0);  // reduced and gathered by messages
  for (const RankUse& use : describe(Zero{.stage = 1}, 4).ranks) CHECK(use.mapped == 0);
  CHECK_THAT(shared(1).text(), Contains("the ranks hold 2.") && Contains("their resident memory adds up to 4."));
}

TEST_CASE("describe warns if the ranks of a machine need more memory than it has", "[parallel][describe]") {
  Description found = describe(DataParallel{}, 4);
  const Index each = found.ranks[0].memory();
  CHECK(found.warning().empty());  // the machine is not known
  found.machine = {4 * each, 0, 4};
  CHECK(found.warning().empty());
  found.machine.memory = 4 * each - 1;
  CHECK_THAT(found.warning(), StartsWith("warning: the 4 ranks of this machine need 4.1 MiB, but it has 4.1 MiB of memory"));
  CHECK_THAT(found.text(), EndsWith(found.warning()));
  found.machine = {each, 3, 1};
  CHECK(found.warning().empty());
  found.machine = {each, 2, 8};  // ranks 2 and 3: there are no more
  CHECK_THAT(found.warning(), Contains("the 2 ranks of this machine"));
}

TEST_CASE("Comparison lists each strategy that fits, and the reasons of others", "[parallel][describe]") {
  pdp::plan::Comparison all{{{"all data", describe(DataParallel{}, 4)}, {"stages", describe(Pipeline<>{.micro_batches = 4}, 4)}}};
  all.entries.push_back({.name = "wrong", .problem = "it has no ranks"});
  all.entries[0].description.machine = {1, 0, 4};
  const std::string text = all.text();
  CHECK_THAT(text, StartsWith("strategy  ranks  parameters  gradients  optimizer  activations ") &&
                       Contains("\nall data      4     256 KiB ") && Contains("\nstages        4      64 KiB ") && Contains(" 41 %\n") &&
                       Contains("\nall data: warning: the 4 ranks") && EndsWith("\nwrong does not fit: it has no ranks"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
}

}  // namespace describe_test
