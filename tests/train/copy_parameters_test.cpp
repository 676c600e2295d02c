#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/plan/schedule.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

namespace copy_parameters_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace strategy = pdp::strategy;
using pdp::testing::ranks, pdp::testing::errors;
using strategy::AnyStrategy;

namespace {

constexpr nn::Sequential model{nn::Linear{6, 8}, nn::Tanh{}, nn::Linear{8, 8}, nn::Tanh{}, nn::Linear{8, 4}};
constexpr pdp::Task task{model, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 0.01f}};
constexpr pdp::TrainerOptions options{.global_batch = 12, .seed = 1};

/// 30 samples with numbers as targets.
pdp::data::InMemory<float> samples() {
  return {pdp::Shape{6}, pdp::testing::normal(30 * 6, 1), pdp::testing::normal(30 * 4, 2), pdp::Shape{4}};
}

std::vector<AnyStrategy> strategies(int size) {
  std::vector<AnyStrategy> all{strategy::DataParallel{},   strategy::DataParallel{.unit_elements = 1},
                               strategy::Zero{.stage = 1}, strategy::Zero{.stage = 3},
                               strategy::TensorParallel{}, strategy::Pipeline<pdp::plan::GPipe>{.micro_batches = 2}};
  if (size == 4) all.emplace_back(strategy::Hybrid<>{.mesh = {.data = 1, .pipeline = 2, .tensor = 2}, .micro_batches = 2});
  return all;
}

template <class P>
void check_all_pairs(int size, P precision) {
  const auto data = samples();
  ranks<comm::Thread>(size, [&](comm::Thread& world) {
    const auto all = strategies(size);
    for (std::size_t from = 0; from < all.size(); ++from) {
      for (const std::size_t to : {from, (from + 1) % all.size(), (from + 3) % all.size()}) {
        pdp::Trainer source{world, all[from], task, options, precision};
        source.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
        pdp::Trainer copy{world, all[to], task, {.global_batch = 12, .seed = 2}, precision};
        copy.copy_parameters(source);
        const auto expected = source.parameters(), found = copy.parameters();
        for (std::size_t t = 0; t < expected.size(); ++t)
          if (!pdp::testing::same_bits(found[t].values, expected[t].values))
            throw std::logic_error{pdp::text(expected[t].name, " differs: ", from, " to ", to)};
        copy.check_parameters();
        copy.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});  // compares the parameters of all ranks, and goes on
      }
    }
    return 0;
  });
}

/// Returns the first parameter on rank 0, and 0 on the others.
template <class TrainerType>
float first_parameter(TrainerType& trainer) {
  const auto tensors = trainer.parameters();
  return tensors.empty() ? 0 : tensors.front().values.front();
}

/// Returns the message of the ConfigError with which copy_parameters() throws, if it has changed nothing.
template <class Source, class Copy>
std::string refusal(Copy& copy, Source& source) {
  const float before = first_parameter(copy);
  std::string message = "nothing was thrown";
  try {
    copy.copy_parameters(source);
  } catch (const pdp::ConfigError& error) {
    message = error.what();
  }
  return first_parameter(copy) == before ? message : "the parameters have changed";
}

}  // namespace

TEST_CASE("Trainer::copy_parameters copies bits between all strategies on all ranks", "[train][copy]") {
  const int size = GENERATE(1, 2, 4);
  check_all_pairs(size, pdp::Float32{});
}

TEST_CASE("Trainer::copy_parameters copies doubles, which tensors in files would round", "[train][copy]") {
  const std::vector<double> x = pdp::testing::normal<double>(5 * 6, 3);
  const std::vector<std::int32_t> y{0, 3, 1, 2, 3};
  constexpr pdp::Task doubles{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 0.01f}};
  const auto same = ranks<comm::Thread>(2, [&](comm::Thread& world) {
    pdp::Trainer source{world, strategy::DataParallel{}, doubles, {.global_batch = 10, .seed = 1}, pdp::Float64{}};
    for (int step = 0; step < 3; ++step) source.step(x, y);
    pdp::Trainer copy{world, strategy::Zero{.stage = 3}, doubles, {.global_batch = 10, .seed = 2}, pdp::Float64{}};
    copy.copy_parameters(source);
    return pdp::testing::same_bits(copy.predict(x), source.predict(x));
  });
  CHECK(same == std::vector<bool>{true, true});
}

TEST_CASE("Trainer::copy_parameters takes a task with another optimizer, and the trainer itself", "[train][copy]") {
  comm::Self world;
  constexpr pdp::Task other{model, pdp::loss::MeanSquaredError{}, pdp::optim::Sgd{.lr = 0.5f}};
  pdp::Trainer source{world, strategy::Single{}, other, {.global_batch = 3, .seed = 4}};
  pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
  const auto x = pdp::testing::normal(3 * 6, 5);
  copy.copy_parameters(source);
  CHECK(copy.predict(x) == source.predict(x));
  copy.copy_parameters(copy);
  CHECK(copy.predict(x) == source.predict(x));
}

TEST_CASE("Trainer::copy_parameters refuses a trainer of another model on every rank, and changes nothing", "[train][copy]") {
  for (const std::string& each : ranks<comm::Thread>(2, [](comm::Thread& world) {
         constexpr pdp::Task wider{nn::Sequential{nn::Linear{6, 9}, nn::Tanh{}, nn::Linear{9, 4}}, pdp::loss::MeanSquaredError{},
                                   pdp::optim::Sgd{.lr = 0.5f}};
         pdp::Trainer source{world, strategy::DataParallel{}, wider, options};
         pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
         return refusal(copy, source);
       }))
    CHECK(each ==
          "copy_parameters() was given a trainer of another model: it has 0.weight of shape [9, 6], but this trainer has 0.weight of shape "
          "[8, 6]; give it a trainer of the same model");
  for (const std::string& each : ranks<comm::Thread>(2, [](comm::Thread& world) {
         constexpr pdp::Task shorter{nn::Sequential{nn::Linear{6, 8}, nn::Tanh{}, nn::Linear{8, 8}}, pdp::loss::MeanSquaredError{},
                                     pdp::optim::Sgd{.lr = 0.5f}};
         pdp::Trainer source{world, strategy::DataParallel{}, shorter, options};
         pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
         return refusal(copy, source);
       }))
    CHECK_THAT(each, Contains("it has only 4 parameters, but this trainer has 4.weight of shape [4, 8]"));
}

TEST_CASE("Trainer::copy_parameters refuses a trainer on another world on every rank", "[train][copy]") {
  for (const std::string& each : ranks<comm::Thread>(2, [](comm::Thread& world) {
         comm::Thread alone = world.split(world.rank(), 0);
         pdp::Trainer source{alone, strategy::Single{}, task, options};
         pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
         return refusal(copy, source);
       }))
    CHECK(
        each ==
        "copy_parameters() was given a trainer on a world of 1 rank, but this trainer's world has 2; give it a trainer on the same world");
  for (const std::string& each : ranks<comm::Thread>(3, [](comm::Thread& world) {  // the same ranks in the opposite order
         comm::Thread turned = world.split(0, -world.rank());
         pdp::Trainer source{turned, strategy::DataParallel{}, task, options};
         pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
         return refusal(copy, source);
       }))
    CHECK_THAT(each, Contains("was given another set of parameters than rank 0"));
}

TEST_CASE("Trainer::copy_parameters names the rank that gives another trainer or makes another call", "[train][copy][agreement]") {
  const auto data = samples();
  for (const std::string& each : ranks<comm::Thread>(2, [&](comm::Thread& world) {
         pdp::Trainer first{world, strategy::DataParallel{}, task, options}, second{world, strategy::DataParallel{}, task, options};
         second.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
         pdp::Trainer copy{world, strategy::DataParallel{}, task, options};
         return refusal(copy, world.rank() == 0 ? first : second);
       }))
    CHECK_THAT(each, Contains("rank 1 was given another set of parameters than rank 0"));
  for (const auto& thrown : errors<comm::Thread>(2, [&](comm::Thread& world) {
         pdp::Trainer source{world, strategy::DataParallel{}, task, options}, copy{world, strategy::DataParallel{}, task, options};
         if (world.rank() == 1)
           copy.copy_parameters(source);
         else
           copy.fit(data, {.epochs = 1}, [](const pdp::Epoch&) {});
       }))
    CHECK_THAT(thrown.what(), Contains("rank 1 calls copy_parameters, but rank 0 calls fit"));
}

}  // namespace copy_parameters_test
