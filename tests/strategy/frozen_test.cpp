#include <pdp/checkpoint/parameters.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/describe.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "support.hpp"

/// Training of models with frozen layers.
namespace frozen_test {

namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape;
using pdp::checkpoint::Tensor;
using pdp::comm::Thread;

namespace {

/// Layers behind each other: trained, frozen and trained again, so that gradients pass through frozen layers. `Freeze`: nn::Frozen, or a
/// function that returns the block itself.
template <class Freeze>
auto sandwich(const Freeze& freeze) {
  using namespace nn;
  return Sequential{
      Linear{6, 8}, Tanh{},       freeze(Sequential{Linear{8, 16}, Tanh{}, Residual{Sequential{Linear{16, 16}, Tanh{}}}, Linear{16, 8}}),
      Tanh{},       Linear{8, 8}, Tanh{},
      Linear{8, 3}};
}
/// A frozen backbone and a trained head.
template <class Freeze>
auto backbone(const Freeze& freeze) {
  using namespace nn;
  return Sequential{freeze(Sequential{Linear{6, 64}, Tanh{}, Residual{Sequential{Linear{64, 32}, Tanh{}, Linear{32, 64}}}, Tanh{},
                                      Linear{64, 8}, Tanh{}}),
                    Linear{8, 8}, Tanh{}, Linear{8, 3}};
}
constexpr auto frozen = [](const auto& block) { return nn::Frozen{block}; };
constexpr auto trained = [](const auto& block) { return block; };

constexpr optim::ParameterGroup inside_sandwich{.chooses = [](const optim::ParameterInfo& of) { return of.layer.starts_with("2"); },
                                                .is_frozen = true};
constexpr optim::ParameterGroup inside_backbone{.chooses = [](const optim::ParameterInfo& of) { return of.layer.starts_with("0"); },
                                                .is_frozen = true};
constexpr optim::AdamW rule{.lr = 0.02f, .weight_decay = 0.1f};

struct Way {
  int ranks;
  strategy::AnyStrategy strategy;
};
std::vector<Way> ways() {
  using Schedule = strategy::OneForwardOneBackward;
  std::vector<Way> all{{1, strategy::Single{.accumulate = 2}}};
  for (const int ranks : {2, 3}) {
    all.push_back({ranks, strategy::DataParallel{}});
    all.push_back({ranks, strategy::DataParallel{.accumulate = 2, .unit_elements = 1}});
    for (const int stage : {1, 2, 3}) {
      all.push_back({ranks, strategy::Zero{.stage = stage, .accumulate = 2, .unit_elements = 1}});
      all.push_back({ranks, strategy::Zero{.stage = stage}});
    }
    all.push_back({ranks, strategy::Pipeline<Schedule>{.micro_batches = 3}});
    all.push_back({ranks, strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = 3, .join_weights = 2}});
  }
  all.push_back({4, strategy::Pipeline<Schedule>{.micro_batches = 2, .recompute = true}});
  all.push_back({2, strategy::Pipeline<strategy::Interleaved>{.micro_batches = 2}});
  all.push_back({2, strategy::TensorParallel{}});
  all.push_back({4, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .tensor = 2}}});
  all.push_back({4, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}});
  all.push_back({8, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2}});
  return all;
}

pdp::data::InMemory<std::int32_t> samples() {
  constexpr Index count = 34;  // 3 batches an epoch, the last one of 10 rows
  std::vector<std::int32_t> classes;
  for (Index i = 0; i < count; ++i) classes.push_back(static_cast<std::int32_t>(i * i % 3));
  return {Shape{6}, support::normal(count * 6, 8), classes};
}

/// A strategy that knows nothing of frozen layers, as a user may write one: it reduces and updates all units.
struct Unaware {
  [[nodiscard]] plan::Plan plan(nn::Outline model, plan::RankInWorld at) const {
    for (nn::Outline::Layer& layer : model.layers) layer.is_frozen = false;
    return strategy::DataParallel{.accumulate = 2}.plan(model, at);
  }
};

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> before, after;
};
template <class Comm = Thread, class Task>
Run train(const Task& task, const Way& way, const pdp::TrainerOptions& options = {.global_batch = 12, .seed = 5, .clip_norm = 0.1}) {
  return pdp::testing::ranks<Comm>(way.ranks,
                                   [&](Comm& world) {
                                     pdp::Trainer trainer{world, way.strategy, task, options};
                                     Run made;
                                     made.before = trainer.parameters();
                                     trainer.fit(
                                         samples(), {.epochs = 3, .progress = false}, [](const pdp::Epoch&) {},
                                         [&](std::int64_t, const auto& totals) { made.losses.push_back(totals.mean_loss()); });
                                     made.after = trainer.parameters();
                                     return made;
                                   })
      .front();
}

void check_same(const Run& found, const Run& expected) {
  REQUIRE(found.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < found.losses.size(); ++step) CHECK_THAT(found.losses[step], WithinRel(expected.losses[step], 1e-4));
}
/// Checks that all parameters inside a layer with this number keep their values, and that others change.
void check_frozen(const Run& run, const std::string& layer) {
  for (std::size_t k = 0; k < run.before.size(); ++k) {
    INFO(run.before[k].name);
    CHECK((run.before[k].values == run.after[k].values) == run.before[k].name.starts_with(layer));
  }
}

template <class Model>
std::vector<plan::Plan> plans_of(const Model& model, const strategy::AnyStrategy& way, int ranks) {
  const nn::Outline outline = nn::outline(model, Shape{6});
  std::vector<plan::Plan> plans = strategy::plans(way, outline, ranks);
  REQUIRE(plan::explain(plan::verify(outline, plans), plans) == "the plan is sound");
  return plans;
}
Index count(const plan::Plan& plan, plan::Op op) {
  return std::ranges::count_if(plan.step, [op](const plan::Instruction& i) { return i.op == op; });
}

}  // namespace

TEST_CASE("Frozen trains like a frozen parameter group under every strategy", "[parallel][frozen]") {
  const auto check = [](const auto& with_frozen, const auto& with_group, const std::string& layer) {
    const Run expected = train(with_group, {1, strategy::Single{}});
    const Run single = train(with_frozen, {1, strategy::Single{}});
    CHECK(single.losses == expected.losses);  // to the bit
    check_frozen(single, layer);
    for (const Way& way : ways()) {
      INFO(way.ranks << " ranks");
      const Run found = train(with_frozen, way);
      check_same(found, expected);
      check_frozen(found, layer);
    }
    check_same(train<pdp::comm::Shm>(with_frozen, {2, strategy::DataParallel{}}), expected);
    const Run unaware = train(with_frozen, {2, Unaware{}});
    check_same(unaware, expected);
    check_frozen(unaware, layer);
  };
  const pdp::loss::CrossEntropy loss{};
  check(pdp::Task{sandwich(frozen), loss, rule}, pdp::Task{sandwich(trained), loss, optim::Grouped{rule, inside_sandwich}}, "2");
  check(pdp::Task{backbone(frozen), loss, rule}, pdp::Task{backbone(trained), loss, optim::Grouped{rule, inside_backbone}}, "0");
}

TEST_CASE("A frozen BatchNorm and Dropout compute as in evaluations", "[parallel][frozen]") {
  using namespace nn;
  const auto model = [](const auto& freeze, float dropped) {
    return Sequential{
        Linear{6, 8},
        freeze(Sequential{BatchNorm{.channels = 8}, Dropout{dropped}, Residual{Sequential{BatchNorm{.channels = 8}, Tanh{}}}}),
        Linear{8, 4}};
  };
  const pdp::Task task{model(frozen, 0.5f), pdp::loss::CrossEntropy{}, rule};
  const Run single = train(task, {1, strategy::Single{}});
  check_frozen(single, "1");
  // Without rates, running statistics of 0 and 1 change nothing but a rounding by eps.
  const pdp::Task plain{Sequential{Linear{6, 8}, Residual{Tanh{}}, Linear{8, 4}}, pdp::loss::CrossEntropy{}, rule};
  const Run unnormalised = train(plain, {1, strategy::Single{}});
  for (std::size_t step = 0; step < 4; ++step) CHECK_THAT(single.losses[step], WithinRel(unnormalised.losses[step], 1e-3));
  // So micro-batches are no different batches for it, also where a trained BatchNorm is refused.
  for (const Way& way : ways()) {
    if (way.ranks > 3) continue;
    INFO(way.ranks << " ranks");
    check_same(train(task, way), single);
  }
}

TEST_CASE("A frozen BatchNorm inside a trained block takes micro-batches and batches of one row", "[parallel][frozen]") {
  using namespace nn;
  const auto model = [](const auto& block) { return Sequential{Linear{6, 8}, Tanh{}, Residual{block}, Linear{8, 4}}; };
  const pdp::Task task{model(Sequential{Linear{8, 8}, Frozen{BatchNorm{.channels = 8}}, Tanh{}}), pdp::loss::CrossEntropy{}, rule};
  const pdp::Task plain{model(Sequential{Linear{8, 8}, Tanh{}}), pdp::loss::CrossEntropy{}, rule};
  const Run single = train(task, {1, strategy::Single{}}), unnormalised = train(plain, {1, strategy::Single{}});
  for (std::size_t step = 0; step < 4; ++step) CHECK_THAT(single.losses[step], WithinRel(unnormalised.losses[step], 1e-3));
  for (const Way& way : ways()) {
    if (way.ranks > 3) continue;
    INFO(way.ranks << " ranks");
    check_same(train(task, way), single);
  }
  CHECK(train(task, {2, strategy::DataParallel{}}, {.global_batch = 11, .seed = 5}).losses.size() == 12);  // the last batch has one row
}

TEST_CASE("Checkpoints of a model fit the same model with frozen layers", "[parallel][frozen]") {
  const files::TemporaryFolder folder;
  const pdp::Task task{backbone(frozen), pdp::loss::CrossEntropy{}, rule};
  const pdp::Task all{backbone(trained), pdp::loss::CrossEntropy{}, rule};
  pdp::testing::ranks<Thread>(2, [&](Thread& world) {
    const auto fit = [](auto& trainer) { trainer.fit(samples(), {.epochs = 1, .progress = false}, [](const pdp::Epoch&) {}); };
    const auto values = [](auto& trainer) {
      std::vector<float> found;
      for (const Tensor& tensor : trainer.parameters()) found.insert(found.end(), tensor.values.begin(), tensor.values.end());
      return found;
    };
    const strategy::Zero zero{.stage = 3, .unit_elements = 1};
    pdp::Trainer first{world, strategy::DataParallel{}, all, {.global_batch = 12}};
    fit(first);
    first.save(folder / "all");
    pdp::Trainer second{world, zero, task, {.global_batch = 12}};
    second.load(folder / "all");
    CHECK(values(second) == values(first));
    fit(second);
    second.save(folder / "frozen");
    pdp::Trainer third{world, strategy::DataParallel{}, all, {.global_batch = 12}};
    third.load(folder / "frozen");
    CHECK(values(third) == values(second));
    const std::vector<float> end = values(third), start = values(first);
    CHECK((world.rank() > 0 || end != start));  // rank 0 has the parameters
  });
}

TEST_CASE("A model may be frozen as a whole", "[parallel][frozen]") {
  const pdp::Task task{nn::Frozen{backbone(trained)}, pdp::loss::CrossEntropy{}, rule};
  for (const Way& way : ways()) {
    INFO(way.ranks << " ranks");
    const Run run = train(task, way);
    CHECK(run.losses.size() == 9);
    check_frozen(run, "");
  }
}

TEST_CASE("Units of frozen parameters have no gradients, reductions and updates", "[parallel][frozen][verify]") {
  const strategy::DataParallel data{.unit_elements = 1};
  const auto with = plans_of(backbone(frozen), data, 2), without = plans_of(backbone(trained), data, 2);
  REQUIRE(with.front().units.size() == without.front().units.size());
  CHECK(count(without.front(), plan::Op::reduce_start) == 5);
  CHECK(count(with.front(), plan::Op::reduce_start) == 2);
  CHECK(count(with.front(), plan::Op::update) == 2);
  // One unit would be large enough for all layers, but frozen ones have units of their own, if they are not too small.
  const auto large = plans_of(backbone(frozen), strategy::DataParallel{}, 2);
  CHECK(large.front().units.size() == 2);
  CHECK(count(large.front(), plan::Op::reduce_start) == 1);
  for (const strategy::AnyStrategy& way :
       {strategy::AnyStrategy{data}, strategy::AnyStrategy{strategy::Zero{.stage = 2, .unit_elements = 1}},
        strategy::AnyStrategy{strategy::Pipeline<strategy::OneForwardOneBackward>{}}}) {
    const auto use = [&](const auto& model) {
      const nn::Outline outline = nn::outline(model, Shape{6});
      return plan::describe(outline, plans_of(model, way, 2), {.global_batch = 8}).total();
    };
    const auto less = use(backbone(frozen)), all = use(backbone(trained));
    CHECK(less.gradients < all.gradients);
    CHECK(less.activations < all.activations);
    CHECK(less.sent < all.sent);
  }
  CHECK(plans_of(sandwich(frozen), strategy::DataParallel{}, 2).front().units.size() == 1);
  // A rank that holds frozen layers only.
  const strategy::Pipeline<strategy::OneForwardOneBackward> pipeline{.cuts = {3}};
  const nn::Outline outline = nn::outline(backbone(frozen), Shape{6});
  const auto of_first = plan::describe(outline, plans_of(backbone(frozen), pipeline, 2), {.global_batch = 8}).ranks.front();
  CHECK(of_first.gradients == 0);
  CHECK(of_first.parameters > 0);
}

TEST_CASE("ZeRO-3 gathers a frozen backbone for forward only", "[parallel][frozen][verify]") {
  const strategy::Zero zero{.stage = 3, .unit_elements = 1};
  const auto gathers = [&](const auto& model) { return count(plans_of(model, zero, 2).front(), plan::Op::gather_start); };
  CHECK(gathers(backbone(trained)) == 8);  // 5 for forward, and 3 for backward, as the last two of forward are there already
  CHECK(gathers(backbone(frozen)) == 5);
  CHECK(gathers(sandwich(frozen)) == gathers(sandwich(trained)));
}

TEST_CASE("Describe says how many parameters are frozen", "[parallel][frozen][verify]") {
  const auto model = backbone(frozen);
  const nn::Outline outline = nn::outline(model, Shape{6});
  const auto description =
      plan::describe(outline, plans_of(model, strategy::DataParallel{}, 2), {.global_batch = 8}, nn::layer_infos(model));
  CHECK_THAT(description.text(), Contains("5259 parameters (5160 frozen)"));
}

}  // namespace frozen_test
