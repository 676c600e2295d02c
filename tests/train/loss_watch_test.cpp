#include <pdp/comm/thread.hpp>
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
          trainer.fit(data, {.epochs = 2, .shuffle = false, .progress = false}, [](const pdp::Epoch&) {});
        });
      },
      stderr);
}

}  // namespace

TEST_CASE("Trainer reports the first loss that is not finite once, on rank 0", "[train][non_finite]") {
  CHECK(said(pdp::plan::NonFinite::ignore) ==
        "pdp: the loss of step 1 is nan, so the parameters may not be finite from then on; train with .non_finite = "
        "pdp::plan::NonFinite::stop to learn the rank and the tensor, or with NonFinite::skip to leave such steps out\n");
}

TEST_CASE("Trainer reports no loss of a step that was skipped", "[train][non_finite]") { CHECK(said(pdp::plan::NonFinite::skip).empty()); }

}  // namespace loss_watch_test
