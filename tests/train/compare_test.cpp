#include <pdp/train/compare.hpp>

#include <algorithm>
#include <string>

#include <pdp/comm/thread.hpp>
#include <pdp/loss/losses.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/optimizers.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/testing/ranks.hpp>

#include "catch.hpp"

namespace compare_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{6, 10}, nn::Relu{}, nn::Linear{10, 4}, nn::Relu{}, nn::Linear{4, 3}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
constexpr pdp::TrainerOptions options{.global_batch = 12};

}  // namespace

TEST_CASE("compare describes each strategy as describe does, and lists those that do not fit", "[train][describe]") {
  const auto all = pdp::compare(
      task, {{"one", Single{}, 1}, {"data", DataParallel{}}, {"stages", Pipeline<>{.micro_batches = 3}}, {"wrong", Single{}}}, 2, options);
  REQUIRE(all.entries.size() == 4);
  CHECK(all.entries[0].description.text() == pdp::describe(task, Single{}, 1, options).text());
  CHECK(all.entries[1].description.text() == pdp::describe(task, DataParallel{}, 2, options).text());
  CHECK(all.entries[2].description.text() == pdp::describe(task, Pipeline<>{.micro_batches = 3}, 2, options).text());
  CHECK(all.entries[3].description.ranks.empty());
  CHECK_THAT(all.entries[3].problem, Contains("Single is for one rank"));
  CHECK_THAT(all.text(), Contains("\nwrong does not fit: "));
  constexpr pdp::Task any_width{nn::Relu{}, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};
  CHECK_THROWS_WITH(pdp::compare(any_width, {{"one", Single{}}}, 1, options), Contains("the trainer needs theirs"));
}

TEST_CASE("describe counts the parameters of the whole model, however layers are divided", "[train][describe]") {
  constexpr pdp::Index parameters = 6 * 10 + 10 + 10 * 4 + 4 + 4 * 3 + 3;
  for (const pdp::NamedStrategy& each : pdp::usual_strategies(2)) {
    const auto found = pdp::describe(task, each.strategy, 2, options);
    INFO(each.name);
    CHECK(found.parameters == parameters);
  }
  // A rank of two has half of the columns of layer 0 and half of the rows of layer 2.
  CHECK_THAT(pdp::describe(task, TensorParallel{}, 2, options).text(),
             Contains("0 ColumnParallel") && Contains(": 74 parameters: 0 Replicate"));
}

TEST_CASE("usual_strategies fit any number of ranks, and have names of their own", "[train][describe]") {
  constexpr pdp::Task wide{
      nn::Sequential{nn::Linear{16, 16}, nn::Relu{}, nn::Linear{16, 16}, nn::Relu{}, nn::Linear{16, 16}, nn::Relu{}, nn::Linear{16, 16}},
      pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{}};
  for (const int ranks : {1, 2, 3, 4, 6}) {
    const auto all = pdp::compare(wide, pdp::usual_strategies(ranks), ranks, {.global_batch = 48});
    CHECK(all.entries.size() >= 2);
    for (const auto& each : all.entries) {
      CAPTURE(ranks, each.name, each.problem);
      const bool divides = each.name.find("TensorParallel") != std::string::npos;
      CHECK((each.problem.empty() || (divides && 16 % ranks != 0)));
      CHECK(std::ranges::count(all.entries, each.name, &pdp::plan::Comparison::Entry::name) == 1);
    }
  }
}

TEST_CASE("describe and compare know the machine of ranks that share memory", "[train][describe]") {
  const auto warnings = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
    auto found = pdp::describe(task, DataParallel{}, world, options);
    auto all = pdp::compare(task, {{"data", DataParallel{}}, {"wrong", Single{}}}, world, options);
    CHECK(found.machine.memory > 0);
    CHECK(found.machine.ranks == 2);
    CHECK(found.ranks[0].mapped > 0);
    CHECK(all.entries[0].description.ranks[0].mapped == found.ranks[0].mapped);
    found.machine.memory = all.entries[0].description.machine.memory = all.entries[1].description.machine.memory = 1000;
    CHECK_THAT(all.text(), Contains("data: " + found.warning()));
    return found.warning();
  });
  CHECK_THAT(warnings.front(), Contains("but it has 1000 B"));
  CHECK(pdp::describe(task, DataParallel{}, 2, options).machine.memory == 0);
}

}  // namespace compare_test
