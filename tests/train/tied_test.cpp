#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/layer_info.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/tied_output.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/describe.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "support.hpp"
#include "train/ways.hpp"

/// Models whose output layer has the table of the embedding.
namespace tied_test {

namespace nn = pdp::nn;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape, pdp::comm::Self, pdp::comm::Thread;
using pdp::checkpoint::Tensor;
using plan::Instruction, plan::Instructions, plan::Op;
using Set = pdp::data::InMemory<std::int32_t, std::int32_t>;

namespace {

constexpr Index positions = 4, vocabulary = 10, width = 6;
constexpr nn::Initializer small = nn::normal(0.4);
template <class Last>
constexpr auto model(const Last& last) {
  return nn::Sequential{nn::Embedding{vocabulary, width, small},
                        nn::LearnedPositions{positions, width},
                        nn::Linear{width, 8},
                        nn::Tanh{},
                        nn::Linear{8, width},
                        nn::Tanh{},
                        last};
}
constexpr pdp::optim::Sgd rule{.lr = 0.1f, .momentum = 0.9f};
constexpr pdp::Task task{model(nn::TiedOutput{vocabulary, width}), pdp::loss::CrossEntropy{}, rule};

Set samples(Index count) {
  std::vector<std::int32_t> x, y;
  for (Index i = 0; i < count * positions; ++i) {
    x.push_back(static_cast<std::int32_t>(i * i % 7919 % vocabulary));
    y.push_back(static_cast<std::int32_t>((x.back() * 3 + i % positions) % vocabulary));
  }
  return {Shape{positions}, x, y, Shape{positions}};
}

const Tensor& named(const std::vector<Tensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  REQUIRE(found != tensors.end());
  return *found;
}

/// A strategy that knows nothing of tied layers, as a user may write one.
struct Unaware {
  Index unit_elements = 1;
  [[nodiscard]] plan::Plan plan(nn::Outline model, plan::RankInWorld at) const {
    model.tied_output = -1;
    return strategy::DataParallel{.accumulate = 2, .unit_elements = unit_elements}.plan(model, at);
  }
};

std::vector<ways_test::Way> ways() {
  using Schedule = strategy::OneForwardOneBackward;
  std::vector<ways_test::Way> all = ways_test::ways();
  all.push_back({"accumulation", 2, strategy::DataParallel{.accumulate = 3, .unit_elements = 1}});
  for (const int stage : {1, 2, 3})
    all.push_back({"zero in parts", 2, strategy::Zero{.stage = stage, .accumulate = 2, .unit_elements = 1}});
  all.push_back({"recomputation", 4, strategy::Pipeline<Schedule>{.micro_batches = 2, .recompute = true}});
  all.push_back({"zero bubble", 3, strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 3, .join_weights = 2}});
  all.push_back({"interleaved", 2, strategy::Pipeline<strategy::Interleaved>{.micro_batches = 2}});
  all.push_back({"replicas", 4, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}});
  all.push_back({"unaware", 2, Unaware{}});
  return all;
}

plan::Verdict verdict_of(const std::vector<plan::Plan>& plans) { return plan::verify(nn::outline(task.model, Shape{positions}), plans); }

}  // namespace

TEST_CASE("The gradient of a tied parameter is the sum of those of its two layers", "[train][tied]") {
  // Two models with the same values. In the second one, the two tables are apart.
  constexpr pdp::optim::Sgd plain{.lr = 0.5f};
  const pdp::Task tied{task.model, task.loss, plain};
  const pdp::Task apart{model(nn::Linear{width, vocabulary, false}), task.loss, plain};
  Self self;
  const pdp::TrainerOptions options{.global_batch = 12, .seed = 3, .input = Shape{positions}};
  pdp::Trainer with{self, strategy::Single{}, tied, options};
  pdp::Trainer without{self, strategy::Single{}, apart, options};
  const std::vector<Tensor> before = with.parameters();
  std::vector<Tensor> twice = before;
  twice.push_back(named(before, "0.weight"));
  twice.back().name = "6.weight";
  without.set_parameters(twice, "the test");
  const Set set = samples(12);
  const auto step = [&](auto& trainer) {
    double loss = 0;
    trainer.fit(set, {.epochs = 1, .progress = false}, [&](const pdp::Epoch& epoch) { loss = epoch.loss; });
    return loss;
  };
  CHECK_THAT(step(with), WithinRel(step(without), 1e-6));
  const std::vector<Tensor> after = with.parameters(), after_apart = without.parameters();
  REQUIRE(after.size() == before.size());
  const auto &found = named(after, "0.weight").values, &start = named(before, "0.weight").values,
             &of_input = named(after_apart, "0.weight").values, &of_output = named(after_apart, "6.weight").values;
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK_THAT(found[i] - start[i], WithinAbs(of_input[i] - start[i] + of_output[i] - start[i], 1e-6));
  CHECK(support::difference(of_output, start) > 1e-3);

  // The norm counts the parameter once.
  double square = 0;
  for (const Tensor& tensor : before)
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double gradient = (named(after, tensor.name).values[i] - tensor.values[i]) / plain.lr;
      square += gradient * gradient;
    }
  pdp::Trainer clipped{self, strategy::Single{}, tied, {.global_batch = 12, .seed = 3, .input = Shape{positions}, .clip_norm = 0.01}};
  step(clipped);
  const auto scaled = clipped.parameters();
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK_THAT(named(scaled, "0.weight").values[i] - start[i], WithinAbs((found[i] - start[i]) * 0.01 / std::sqrt(square), 1e-6));
}

TEST_CASE("A tied model has the losses of serial training under every strategy", "[train][tied]") {
  const Set set = samples(46);  // the last batch is short
  for (const double clip : {0.0, 0.05}) {
    for (const auto& way : ways()) {
      if (clip > 0 && way.ranks != 2) continue;
      INFO(way.name << " on " << way.ranks << " ranks, clip_norm " << clip);
      const auto report = pdp::testing::serial_equivalence<Thread>(
          task, set, way.strategy, way.ranks,
          {.steps = 15, .global_batch = 12, .input = Shape{positions}, .strict_steps = 15, .gradient = {.clip_norm = clip}});
      INFO(report.text());
      CHECK(report);
    }
  }
}

TEST_CASE("Both copies of a tied parameter stay equal to the bit", "[train][tied]") {
  const pdp::Task adam{task.model, task.loss, pdp::optim::AdamW{.lr = 0.02f}};
  const auto check = [&]<class Comm>(const ways_test::Way& way, Comm*) {
    INFO(way.name << " on " << way.ranks << " ranks");
    const auto differences = pdp::testing::ranks<Comm>(way.ranks, [&](Comm& world) {
      pdp::Trainer trainer{world, way.strategy, adam, {.global_batch = 12, .input = Shape{positions}}};
      trainer.fit(samples(46), {.epochs = 2, .progress = false}, [](const pdp::Epoch&) {});
      trainer.check_parameters();
      // Ranks with both copies compare their slices of them.
      std::vector<std::vector<float>> own;
      for (const nn::SlicePart& part : trainer.engine().stage().slice_parts()) {
        if (part.parameter->full_name() != "0.weight") continue;
        const auto slice = trainer.engine().stage().own_masters(part.unit).subspan(pdp::as_size(part.at), pdp::as_size(part.elements));
        own.emplace_back(slice.begin(), slice.end());
      }
      return own.size() == 2 && own.front() != own.back() ? 1 : 0;
    });
    CHECK(std::ranges::count(differences, 1) == 0);
  };
  for (const auto& way : ways()) check(way, static_cast<Thread*>(nullptr));
  check({"data", 2, strategy::DataParallel{}}, static_cast<pdp::comm::Shm*>(nullptr));
  check({"pipeline", 2, strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}}, static_cast<pdp::comm::Shm*>(nullptr));
}

TEST_CASE("check_parameters() finds a copy that differs from the embedding on another rank", "[train][tied]") {
  pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    pdp::Trainer trainer{
        world, strategy::Pipeline<strategy::OneForwardOneBackward>{}, task, {.global_batch = 12, .input = Shape{positions}}};
    trainer.check_parameters();
    trainer.engine().stage().for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
      if (parameter.is_copy) values[7] += 1;
    });
    CHECK_THROWS_WITH(trainer.check_parameters(), Contains("0.weight differs between the ranks that hold it: rank 1 has other values"));
  });
  Self self;
  pdp::Trainer alone{self, strategy::Single{}, task, {.global_batch = 12, .input = Shape{positions}}};
  alone.check_parameters();
  alone.engine().stage().for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
    if (parameter.is_copy) values[7] += 1;
  });
  CHECK_THROWS_WITH(alone.check_parameters(), Contains("0.weight differs between the two layers that share it"));
}

TEST_CASE("Files hold a tied parameter once, and fit models that are cut in other ways", "[train][tied]") {
  const files::TemporaryFolder folder;
  const pdp::Task adam{task.model, task.loss, pdp::optim::AdamW{.lr = 0.02f}};
  const pdp::TrainerOptions options{.global_batch = 12, .input = Shape{positions}};
  const auto train = [](auto& trainer) {
    std::vector<double> losses;
    trainer.fit(
        samples(46), {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {},
        [&](std::int64_t, const auto& totals) { losses.push_back(totals.mean_loss()); });
    return losses;
  };
  std::vector<double> expected;
  {
    Self self;
    pdp::Trainer single{self, strategy::Single{}, adam, options};
    train(single);
    single.save(folder / "single");
    expected = train(single);
  }
  const std::vector<ways_test::Way> all = ways();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const auto& way = all[number];
    INFO(way.name << " on " << way.ranks << " ranks");
    const std::string name = "of " + std::to_string(number);
    const auto losses = pdp::testing::ranks<Thread>(way.ranks, [&](Thread& world) {
      pdp::Trainer trainer{world, way.strategy, adam, options};
      trainer.load(folder / "single");
      trainer.save(folder / name);
      return train(trainer);
    });
    for (std::size_t step = 0; step < expected.size(); ++step) CHECK_THAT(losses.front()[step], WithinRel(expected[step], 1e-4));
    Self self;
    pdp::Trainer again{self, strategy::Single{}, adam, options};
    again.load(folder / name);
    CHECK(train(again) == expected);  // to the bit
  }
}

TEST_CASE("A file of PyTorch may hold both names of a tied parameter", "[train][tied]") {
  Self self;
  pdp::Trainer trainer{self, strategy::Single{}, task, {.global_batch = 12, .input = Shape{positions}}};
  const std::vector<Tensor> own = trainer.parameters();
  for (const Tensor& tensor : own) CHECK(std::ranges::count(own, tensor.name, &Tensor::name) == 1);
  std::vector<Tensor> both = own;
  both.push_back(named(own, "0.weight"));
  both.back().name = "6.weight";
  trainer.set_parameters(both, "PyTorch");
  const std::vector<std::int32_t> x{1, 2, 3, 4};
  const pdp::Predictor predictor{task.model, both, "PyTorch", {.rows = 1, .input = Shape{positions}}};
  CHECK(predictor.predict(x) == trainer.predict(x));
  both.back().values[3] += 1;
  CHECK_THROWS_WITH(trainer.set_parameters(both, "PyTorch"),
                    Contains("6.weight differs from 0.weight, but the two are one parameter in this model"));
}

TEST_CASE("A frozen tied model has no sum of gradients", "[train][tied]") {
  const pdp::Task frozen{nn::Sequential{nn::Frozen{nn::Embedding{vocabulary, width}}, nn::Linear{width, width}, nn::Tanh{},
                                        nn::Frozen{nn::TiedOutput{vocabulary, width}}},
                         task.loss, rule};
  const auto plans = strategy::plans(strategy::DataParallel{.unit_elements = 1}, nn::outline(frozen.model, Shape{positions}), 2);
  CHECK(std::ranges::none_of(plans.front().step, [](const Instruction& i) { return i.op == Op::add_tied; }));
  for (const auto& way : ways()) {
    if (way.ranks != 2 || way.name == "interleaved") continue;  // there are fewer layers than stages
    INFO(way.name);
    const auto report = pdp::testing::serial_equivalence<Thread>(frozen, samples(46), way.strategy, way.ranks,
                                                                 {.steps = 8, .global_batch = 12, .input = Shape{positions}});
    INFO(report.text());
    CHECK(report);
  }
}

TEST_CASE("A plan adds up the gradients of a tied parameter between its reductions and its updates", "[train][tied][verify]") {
  const nn::Outline outline = nn::outline(task.model, Shape{positions});
  const auto data = strategy::plans(strategy::Zero{.stage = 1, .unit_elements = 1}, outline, 2);
  const auto pipeline = strategy::plans(strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}, outline, 3);
  REQUIRE(verdict_of(data));
  REQUIRE(verdict_of(pipeline));
  for (const auto& plans : {data, pipeline})
    for (const plan::Plan& each : plans) CHECK(each.groups.size() == 1);
  CHECK(plan::members(pipeline, 0, 1) == std::vector{0, 2});
  CHECK(plan::members(pipeline, 1, 1) == std::vector{1});
  CHECK(plan::with_ties(outline, data[0], {0, 2}).step == data[0].step);  // once is enough
  CHECK(plan::with_ties(outline, pipeline[1], {1, 3}).groups.size() == 1);

  const auto of = [](Op op) { return [op](const Instruction& i) { return i.op == op; }; };
  const auto refuse = [&](std::vector<plan::Plan> plans, const std::string& words, const std::function<void(Instructions&)>& change) {
    for (plan::Plan& each : plans) change(each.step);
    INFO(words);
    CHECK_THAT(plan::explain(verdict_of(plans), plans), Contains(words));
  };
  const std::string missing = "comes before the gradients of the two layers that share a parameter are added up";
  refuse(data, missing, [&](Instructions& list) { std::erase_if(list, of(Op::add_tied)); });
  refuse(pipeline, missing, [&](Instructions& list) { std::erase_if(list, of(Op::sum_tied)); });
  refuse(data, missing, [&](Instructions& list) {
    const auto sum = std::ranges::find_if(list, of(Op::add_tied));
    std::iter_swap(sum, sum + 1);  // the first update
  });
  const std::string elsewhere = "names a layer that the rank does not hold";
  refuse(pipeline, elsewhere, [&](Instructions& list) {
    for (Instruction& i : list)
      if (i.op == Op::sum_tied) i = plan::add_tied(0, outline.tied_output);
  });
  refuse(data, "lacks the gradient of the rank's other layer", [&](Instructions& list) {
    const auto sum = std::ranges::find_if(list, of(Op::add_tied));
    *sum = plan::on_unit(Op::sum_tied, 0, 1);
  });
  refuse(pipeline, "adds up the gradient of a layer that shares no parameter", [&](Instructions& list) {
    if (std::ranges::none_of(list, of(Op::sum_tied))) list.push_back(plan::on_unit(Op::sum_tied, 0, 1));  // rank 1
  });
  std::vector<plan::Plan> unequal = data;
  for (plan::Plan& each : unequal) each.units.back().slice = 1 - each.units.back().slice;
  CHECK_FALSE(verdict_of(unequal));
  std::vector<plan::Plan> fewer = pipeline;
  fewer[1].groups.clear();
  CHECK_THAT(plan::explain(verdict_of(fewer), fewer), Contains("has another number of groups than rank 0"));
  const plan::Verdict of_numbers = plan::verify_numbers(
      outline,
      [&] {
        plan::Plan wrong = data.front();
        std::ranges::find_if(wrong.step, of(Op::add_tied))->last = 7;
        return wrong;
      }(),
      0);
  CHECK_THAT(of_numbers.reason, Contains("names layers that do not share a parameter, or that the rank does not hold"));
  refuse(data, "adds up the gradients of the two layers that share a parameter twice", [&](Instructions& list) {
    const auto sum = std::ranges::find_if(list, of(Op::add_tied));
    list.insert(sum, Instruction{*sum});
  });
  refuse(data, "comes before the gradients are summed over all ranks", [&](Instructions& list) {
    const Instruction sum = *std::ranges::find_if(list, of(Op::add_tied));
    std::erase_if(list, of(Op::add_tied));
    list.insert(std::find_if(list.rbegin(), list.rend(), of(Op::reduce_wait)).base() - 1, sum);
  });
  refuse(data, "names layers that do not share a parameter",
         [&](Instructions& list) { std::ranges::find_if(list, of(Op::add_tied))->last = 4; });
  refuse(pipeline, "uses a group of other than two ranks", [&](Instructions& list) {
    for (Instruction& i : list)
      if (i.op == Op::sum_tied) i.group = 0;
  });
  std::vector<plan::Plan> one_sided = pipeline;
  std::erase_if(one_sided[0].step, of(Op::sum_tied));
  CHECK_FALSE(verdict_of(one_sided));

  // With a norm, the sum is part of what the norm is taken of.
  auto policed = strategy::plans_for({.clip_norm = 1}, strategy::Zero{.stage = 1, .unit_elements = 1}, outline, 2);
  REQUIRE(verdict_of(policed));
  refuse(policed, missing, [&](Instructions& list) {
    const Instruction sum = *std::ranges::find_if(list, of(Op::add_tied));
    std::erase_if(list, of(Op::add_tied));
    list.insert(std::ranges::find_if(list, of(Op::norm_start)) + 1, sum);
  });
}

TEST_CASE("A pipeline may have both layers on one rank, and other layers behind them", "[train][tied][verify]") {
  const pdp::Task early{nn::Sequential{nn::Embedding{vocabulary, width, small}, nn::Tanh{}, nn::TiedOutput{vocabulary, width}, nn::Tanh{},
                                       nn::Linear{vocabulary, vocabulary}},
                        task.loss, rule};
  for (const int cut : {1, 3}) {
    INFO("a cut before layer " << cut);
    const strategy::Pipeline<strategy::OneForwardOneBackward> pipeline{.micro_batches = 2, .cuts = {cut}};
    const auto report = pdp::testing::serial_equivalence<Thread>(early, samples(46), pipeline, 2,
                                                                 {.steps = 8, .global_batch = 12, .input = Shape{positions}});
    INFO(report.text());
    CHECK(report);
  }
}

TEST_CASE("A gradient that is not finite is named, not the tied parameter to which it is added", "[train][tied]") {
  // All tokens are 0, and positions take its vector away again. So large weights pass zeros on, but gradients overflow behind them.
  const Set zeros{Shape{positions}, std::vector<std::int32_t>(12 * positions), std::vector<std::int32_t>(12 * positions, 3),
                  Shape{positions}};
  Self self;
  pdp::Trainer first{self, strategy::Single{}, task, {.global_batch = 12, .input = Shape{positions}}};
  std::vector<Tensor> parameters = first.parameters();
  for (Tensor& tensor : parameters) {
    if (tensor.name.ends_with(".bias")) std::ranges::fill(tensor.values, 0.0f);
    if (tensor.name == "2.weight" || tensor.name == "4.weight") std::ranges::fill(tensor.values, 1e25f);
    if (tensor.name == "1.weight")
      for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = -named(parameters, "0.weight").values[i % width];
  }
  const auto check = [&]<class Comm>(Comm& world, const strategy::AnyStrategy& way) {
    pdp::Trainer trainer{world, way, task, {.global_batch = 12, .input = Shape{positions}, .non_finite = plan::NonFinite::stop}};
    trainer.set_parameters(parameters, "the test");
    CHECK_THROWS_WITH(trainer.fit(zeros, {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {}),
                      Contains("the gradient of 1.weight on rank 0 is not finite"));
  };
  check(self, strategy::Single{});
  pdp::testing::ranks<Thread>(2, [&](Thread& world) { check(world, strategy::Pipeline<strategy::OneForwardOneBackward>{.cuts = {5}}); });
}

TEST_CASE("An Engine refuses a plan that does not add up the gradients of tied layers", "[train][tied]") {
  Self self;
  const nn::Outline outline = nn::outline(task.model, Shape{positions});
  CHECK_THROWS_WITH((pdp::engine::Engine{
                        self, strategy::Single{}.plan(outline, {}), task.model, Shape{positions}, task.loss, task.optimizer, {.rows = 4}}),
                    Contains("but the plan does not add up their gradients; make the plan with with_ties(model, plan, at)"));
}

TEST_CASE("Ranks in common memory share both units of tied layers, or neither", "[train][tied][verify]") {
  const nn::Outline outline = nn::outline(task.model, Shape{positions});
  plan::Plan plan = strategy::plans(strategy::DataParallel{.unit_elements = 1}, outline, 2).front();
  const auto kinds = [&](const plan::Plan& of) {
    const plan::Plan common = plan::in_common_memory(of, {0, 2});
    return std::pair{common.units.front().sharding, common.units.back().sharding};
  };
  CHECK(kinds(plan) == std::pair{plan::Sharding::state, plan::Sharding::state});
  // This rank reads the embedding's parameters behind the reduction of its gradients.
  const auto update = std::ranges::find_if(plan.step, [](const Instruction& i) { return i.op == Op::add_tied; });
  plan.step.insert(update, plan::compute(Op::forward, 0, 0, 1));
  CHECK(kinds(plan) == std::pair{plan::Sharding::none, plan::Sharding::none});
}

TEST_CASE("A tied layer is in a unit of its own", "[train][tied][verify]") {
  const nn::Outline outline = nn::outline(task.model, Shape{positions});
  const auto units = plan::units_by_size(outline, 0, outline.size(), 1000);
  REQUIRE(units.size() == 3);
  CHECK(units[0].first == 5);  // a Tanh, which has no parameters
  CHECK(units[2].last == 1);
  CHECK_THROWS_WITH(
      strategy::plans(Unaware{1000}, outline, 2),
      Contains("layers 0 to 6 of the model (counted from 0) are in one unit of the plan, but one of them shares its parameter "
               "with another layer; put that layer into a unit of its own, as plan::units_by_size does"));
  std::vector<plan::Plan> joined{{.units = {{0, 7}}}};
  CHECK_THAT(plan::explain(verdict_of(joined), joined), Contains("holds a layer that shares its parameter with another one, and other"));
}

TEST_CASE("Describe counts a tied parameter once, and its messages", "[train][tied][verify]") {
  const nn::Outline outline = nn::outline(task.model, Shape{positions});
  const auto pipeline = strategy::plans(strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}, outline, 2);
  const auto description = plan::describe(outline, pipeline, {.global_batch = 8}, nn::layer_infos(task.model));
  CHECK(description.parameters == vocabulary * width + positions * width + (width + 1) * 8 + 9 * width);
  nn::Outline apart = outline;
  apart.tied_output = -1;
  const auto without =
      plan::describe(apart, strategy::plans(strategy::Pipeline<strategy::OneForwardOneBackward>{.micro_batches = 2}, apart, 2),
                     {.global_batch = 8}, nn::layer_infos(task.model));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(description.ranks[rank].calls == without.ranks[rank].calls + 1);
    CHECK(description.ranks[rank].sent == without.ranks[rank].sent + 64 * 4);  // 60 values, padded
  }
  CHECK(description.total().checkpoint == without.total().checkpoint - 64 * 4);
}

}  // namespace tied_test
