#include <pdp/engine/rounded.hpp>

#include <array>
#include <cmath>

#include <pdp/comm/any.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/update.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/strategy_ref.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include "catch.hpp"
#include "erased.hpp"
#include "strategy/tasks.hpp"

namespace rounded_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::BFloat16;

// Gradients that travel as bfloat16, compared with a serial program that rounds in the same places.

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 4}}, pdp::loss::CrossEntropy{},
                         pdp::optim::Sgd{.lr = 0.2f}};
constexpr int steps = 30;
constexpr pdp::Index most = 32;

/// Returns the inputs of a step: 32, 1, 7 or 2 rows of 8 values.
std::vector<float> batch(int step) {
  const std::size_t rows = std::array<std::size_t, 4>{32, 1, 7, 2}[static_cast<std::size_t>(step) % 4];
  return pdp::testing::normal(rows * 8, step % 8);
}

/// Returns the losses of a serial program, which computes the gradient of each share, rounds it and adds it to a sum that it rounds, too.
/// It uses the library's own optimizer update. Another one may round a parameter the other way, and rounding gradients to 16 bits makes
/// such a difference large.
std::vector<double> reference(int shares) {
  std::vector<double> losses;
  erased::ranks<comm::Thread>(1, [&](comm::Any& world) {
    constexpr pdp::Task still{task.model, task.loss, pdp::optim::Sgd{.lr = 0}};
    const Single single;
    pdp::Trainer trainer{world, StrategyRef{single}, still, {.global_batch = most, .seed = 1}};
    auto& stage = trainer.engine().stage();
    for (int step = 0; step < steps; ++step) {
      const std::vector<float> x = batch(step);
      const auto classes = tasks::classes_of(x);
      const auto rows = static_cast<pdp::Index>(classes.size());
      std::vector<BFloat16> sum(stage.gradients(0).size());
      double loss = 0;
      for (int share = 0; share < shares; ++share) {
        const pdp::data::Rows own = pdp::data::shard_rows(rows, {share, shares});
        const auto first = static_cast<std::size_t>(own.first), count = static_cast<std::size_t>(own.size());
        loss += trainer.step(std::span{x}.subspan(first * 8, count * 8), std::span{classes}.subspan(first, count), rows).loss;
        for (std::size_t i = 0; i < sum.size(); ++i) {
          const BFloat16 term{stage.gradients(0)[i]};
          sum[i] = share == 0 ? term : BFloat16{static_cast<float>(sum[i]) + static_cast<float>(term)};
        }
      }
      const std::vector<float> gradient(sum.begin(), sum.end());
      const float* const first_number = gradient.data();
      const pdp::StepNumbers numbers{.factor = 1};
      pdp::cpu::update<pdp::optim::state_fields<pdp::optim::Sgd>>(stage.device(), task.optimizer, &numbers, stage.values(0),
                                                                  {&first_number, 1}, {});
      losses.push_back(loss / static_cast<double>(rows));
    }
    return 0;
  });
  return losses;
}

/// Returns the losses that one rank reports. `strategy`: an erased one.
template <class P, class S>
std::vector<double> losses_on(comm::Any& world, const S& strategy, P precision) {
  pdp::Trainer trainer{world, strategy, task, {.global_batch = most, .seed = 1}, precision};
  std::vector<double> found;
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> x = batch(step);
    const auto classes = tasks::classes_of(x);
    const auto rows = static_cast<pdp::Index>(classes.size());
    const pdp::data::Rows own = pdp::data::shard_rows(rows, trainer.share());
    const auto first = static_cast<std::size_t>(own.first), count = static_cast<std::size_t>(own.size());
    found.push_back(trainer.step(std::span{x}.subspan(first * 8, count * 8), std::span{classes}.subspan(first, count), rows).mean_loss());
  }
  return found;
}
template <class C, class P, class S>
std::vector<double> losses(const S& strategy, int size, P precision) {
  const auto all = erased::ranks<C>(size, [&](comm::Any& world) { return losses_on(world, erased::strategy(strategy), precision); });
  return all.front();
}

/// Returns the largest relative difference, or NaN if there is one.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most_found = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double each = std::abs(a[i] - b[i]) / b[i];
    if (std::isnan(each)) return each;
    most_found = std::max(most_found, each);
  }
  return most_found;
}

}  // namespace

TEMPLATE_TEST_CASE("Bfloat16Gradients gives the losses of a serial program that rounds in the same places", "[parallel][precision]",
                   comm::Thread, comm::Shm) {
  for (const int ranks : {1, 2, 3, 4}) {
    const std::vector<double> serial = reference(ranks);
    CHECK(serial.back() < serial.front());
    CHECK(largest_difference(losses<TestType>(DataParallel{.unit_elements = 64}, ranks, pdp::Bfloat16Gradients{}), serial) < 1e-12);
    for (const int stage : {1, 2, 3})
      CHECK(largest_difference(losses<TestType>(Zero{.stage = stage, .unit_elements = 64}, ranks, pdp::Bfloat16Gradients{}), serial) <
            1e-6);
  }
}

TEST_CASE("Bfloat16Gradients over Tcp gives the losses of the serial program on two ranks", "[parallel][precision]") {
  // Two terms have only one order of addition, so the sum does not depend on the algorithm.
  CHECK(largest_difference(losses<comm::Tcp>(DataParallel{}, 2, pdp::Bfloat16Gradients{}), reference(2)) < 1e-12);
}

TEST_CASE("Bfloat16Gradients changes the losses of Float32 by more than 1e-5 and less than 5e-2", "[parallel][precision]") {
  const auto whole = losses<comm::Thread>(DataParallel{}, 4, pdp::Float32{});
  const auto near = [&](const auto& strategy) {
    const double difference = largest_difference(losses<comm::Thread>(strategy, 4, pdp::Bfloat16Gradients{}), whole);
    CHECK(difference > 1e-5);
    CHECK(difference < 0.05);
  };
  near(DataParallel{});
  for (const int stage : {1, 2, 3}) near(Zero{.stage = stage, .accumulate = 3, .unit_elements = 64});
  near(Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2});
}

}  // namespace rounded_test
