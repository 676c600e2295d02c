#include <pdp/comm/shm.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/random.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/common/configs.hpp"
#include "catch.hpp"

/// The models whose speed is measured, under every strategy with 2, 4 and 8 ranks. Smaller models run with every build of the tests.
namespace models_test {

namespace strategy = pdp::strategy;
using pdp::Index, pdp::Shape;
using Schedule = strategy::OneForwardOneBackward;
using Hybrid = strategy::Hybrid<Schedule>;

namespace {

struct Way {
  std::string name;
  int ranks;
  strategy::AnyStrategy strategy;
};

/// `micro_batches`: most of them. `most_parts`: into how many parts the layers can be divided.
std::vector<Way> ways(int micro_batches, int most_parts) {
  std::vector<Way> all;
  for (const int ranks : {2, 4, 8}) {
    const auto add = [&](const std::string& name, const strategy::AnyStrategy& way) { all.push_back({name, ranks, way}); };
    add("data", strategy::DataParallel{});
    if (micro_batches > 1) add("accumulating data", strategy::DataParallel{.accumulate = micro_batches});
    for (const int stage : {1, 2, 3}) add("zero " + std::to_string(stage), strategy::Zero{.stage = stage});
    add("pipeline", strategy::Pipeline<Schedule>{.micro_batches = micro_batches});
    add("recomputing pipeline", strategy::Pipeline<Schedule>{.micro_batches = micro_batches, .recompute = true});
    add("zero bubble", strategy::Pipeline<strategy::ZeroBubble>{.micro_batches = micro_batches});
    if (ranks <= most_parts) add("tensor", strategy::TensorParallel{micro_batches});
    if (ranks >= 4) {
      add("data and tensor", Hybrid{.mesh = {.data = 2, .tensor = ranks / 2}, .micro_batches = micro_batches});
      add("pipeline and tensor", Hybrid{.mesh = {.pipeline = 2, .tensor = ranks / 2}, .micro_batches = micro_batches});
    }
    if (ranks == 8)
      add("all three", Hybrid{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = micro_batches, .recompute = true});
  }
  return all;
}

/// Batches of 11 and 5 rows in turn, so that shares and micro-batches are uneven, and some are empty.
template <class Sample>
auto batches(const Shape& input, Index classes, Index positions) {
  return [=](int step) {
    const std::size_t rows = step % 2 == 0 ? 11 : 5;
    pdp::testing::GlobalBatch<std::int32_t, Sample> batch{std::vector<Sample>(rows * pdp::as_size(input.elements())), {}};
    pdp::random::Stream stream{pdp::random::make_key(3, "batch", step % 4)};
    for (Sample& value : batch.x) {
      if constexpr (std::same_as<Sample, std::int32_t>)
        value = static_cast<Sample>(stream.below(pdp::as_size(classes)));
      else
        value = static_cast<Sample>(stream.below(1000)) / 500 - 1;
    }
    for (std::size_t i = 0; i < rows * pdp::as_size(positions); ++i)
      batch.targets.push_back(static_cast<std::int32_t>(stream.below(pdp::as_size(classes))));
    return batch;
  };
}

template <class Model, class ConfigType, class P>
void check(const Model& model, const ConfigType& config, const std::vector<Way>& all, P precision) {
  using Sample = std::conditional_t<pdp::nn::any_takes_tokens<pdp::nn::LeafTypes<Model>>, std::int32_t, float>;
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.01f, .momentum = 0.9f}};
  for (const Way& way : all) {
    const auto run = [&]<class C>(std::type_identity<C>) {
      const auto report = pdp::testing::serial_equivalence<C>(task, batches<Sample>(config.input, config.widths.back(), config.positions),
                                                              way.strategy, way.ranks,
                                                              {.steps = 5,
                                                               .global_batch = 11,
                                                               .input = config.input,
                                                               .strict_steps = 5,
                                                               .tolerance = std::same_as<P, pdp::Float64> ? 1e-9 : 1e-5},
                                                              precision);
      INFO(way.name << " on " << way.ranks << " ranks: " << report.text());
      CHECK(report);
    };
    run(std::type_identity<pdp::comm::Thread>{});
    run(std::type_identity<pdp::comm::Shm>{});
  }
}

}  // namespace

// The models with Relu are in double, in which two orders of sums hardly ever decide differently whether its input is positive.
TEST_CASE("lenet has the losses of serial training under every strategy", "[.long]") {
  const auto config = bench::lenet();
  check(pdp::nn::Sequential{pdp::nn::Dropout{0.1f}, config.task.model}, config, ways(3, 8), pdp::Float64{});
}

TEST_CASE("resnet has the losses of serial training under every strategy with one micro-batch", "[.long]") {
  const auto config = bench::resnet();
  check(pdp::nn::Sequential{pdp::nn::Dropout{0.1f}, config.task.model}, config, ways(1, 8), pdp::Float64{});
}

TEST_CASE("gpt has the losses of serial training under every strategy", "[.long]") {
  const auto config = bench::gpt();
  check(pdp::nn::Sequential{config.task.model, pdp::nn::Dropout{0.1f}}, config, ways(3, 4), pdp::Float32{});
}

}  // namespace models_test
