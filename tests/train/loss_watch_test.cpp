#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/epoch.hpp>
#include <pdp/train/trainer.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "captured.hpp"
#include "catch.hpp"
#include "strategy/tasks.hpp"

namespace loss_watch_test {

using pdp::comm::Thread;

namespace {

/// Returns what two ranks print on standard error in two epochs of three steps, if the samples of the second step have a NaN.
std::string said(pdp::plan::NonFinite non_finite) {
  std::vector<float> x = pdp::testing::normal(24 * 8, 1);
  const std::vector<std::int32_t> classes = tasks::classes_of(x);
  x[10 * 8] = pdp::not_a_number<float>();
  const pdp::data::InMemory<std::int32_t> data{pdp::Shape{8}, x, classes};
  return captured(
      [&] {
        pdp::testing::ranks<Thread>(2, [&](Thread& world) {
          pdp::Trainer trainer{
              world, pdp::strategy::DataParallel{}, tasks::classifier, {.global_batch = 8, .seed = 1, .non_finite = non_finite}};
          try {
            trainer.fit(data, {.epochs = 2, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {});
          } catch (const pdp::NonFiniteLoss&) {
            if (non_finite != pdp::plan::NonFinite::stop_on_loss) throw;
          }
        });
      },
      stderr);
}

}  // namespace

TEST_CASE("Trainer reports the first loss that is not finite once, on rank 0, if the training goes on", "[train][non_finite]") {
  CHECK(said(pdp::plan::NonFinite::ignore) ==
        "pdp: the loss of step 1 is NaN, so the parameters may not be finite from then on; NonFinite::stop_on_loss, the default, stops at "
        "such a step and names the rank and the tensor, and NonFinite::skip leaves it out\n");
}

TEST_CASE("Trainer reports no loss of a step that was skipped, or that ends the training", "[train][non_finite]") {
  CHECK(said(pdp::plan::NonFinite::skip).empty());
  CHECK(said(pdp::plan::NonFinite::stop_on_loss).empty());
}

TEST_CASE("Trainer reports the first evaluation whose loss is not finite once, on rank 0, and goes on", "[train][non_finite]") {
  const pdp::data::InMemory<std::int32_t> bad{pdp::Shape{8}, std::vector<float>(16 * 8, pdp::not_a_number<float>()),
                                              std::vector<std::int32_t>(16, 1)};
  std::vector<double> losses;
  CHECK(captured(
            [&] {
              losses = pdp::testing::ranks<Thread>(2, [&](Thread& world) {
                pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, tasks::classifier, {.global_batch = 8, .seed = 1}};
                static_cast<void>(trainer.evaluate(bad));
                return trainer.evaluate(bad).loss;
              });
            },
            stderr) ==
        "pdp: the loss of an evaluation after 0 steps is NaN, so a sample or a parameter is not finite, or the outputs are too "
        "large\n");
  CHECK((pdp::is_nan(losses.at(0)) && pdp::is_nan(losses.at(1))));
}

}  // namespace loss_watch_test
