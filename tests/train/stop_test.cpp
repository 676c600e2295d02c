#include <pdp/checkpoint/folder.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/launch/stop_requests.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <signal.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace stop_test {

using pdp::comm::Thread;
using pdp::strategy::AnyStrategy;
using namespace std::chrono_literals;

namespace {

constexpr pdp::nn::Sequential model{pdp::nn::Linear{2, 3}, pdp::nn::Linear{3, 1}};
constexpr pdp::Task task{model, pdp::loss::MeanSquaredError{}, pdp::optim::Adam{}};

pdp::data::InMemory<float> samples() { return {pdp::Shape{2}, pdp::testing::normal(80, 1), pdp::testing::normal(40, 2)}; }

/// Sets SIGTERM to its default. Catch2 has a handler of its own, which ends the test.
class DefaultHandler {
 public:
  DefaultHandler() { before_ = ::signal(SIGTERM, SIG_DFL); }
  DefaultHandler(const DefaultHandler&) = delete;
  ~DefaultHandler() { ::signal(SIGTERM, before_); }

 private:
  void (*before_)(int);
};

/// Trains for 3 epochs of 5 steps on two ranks. Calls at_step(rank, step) after each step. Returns what the ranks have thrown.
template <class F>
std::vector<pdp::testing::Thrown> fit(const AnyStrategy& strategy, const pdp::CheckpointOptions& checkpoint, const F& at_step) {
  const DefaultHandler without_catch;
  return pdp::testing::errors<Thread>(2, [&](Thread& world) {
    pdp::Trainer trainer{world, strategy, task, {.global_batch = 8, .seed = 1}};
    trainer.fit(
        samples(), {.epochs = 3, .checkpoint = checkpoint}, [](const pdp::Epoch&) {},
        [&](std::int64_t step, const auto&) { at_step(world.rank(), step); });
  });
}

int handled = 0;
void handle(int) { ++handled; }

}  // namespace

TEST_CASE("A signal stops a fit on all ranks after the same step, with a checkpoint from which it continues", "[train][stop]") {
  const files::TemporaryFolder folder;
  const int signal = GENERATE(SIGTERM, SIGUSR1);
  const AnyStrategy strategy = GENERATE(as<AnyStrategy>{}, pdp::strategy::DataParallel{},
                                        pdp::strategy::Pipeline<pdp::strategy::OneForwardOneBackward>{.micro_batches = 2});
  const auto thrown = fit(strategy, {.directory = folder / "run"}, [&](int rank, std::int64_t step) {
    if (rank == 1 && step == 6) ::raise(signal);
  });
  for (const auto& each : thrown) {
    CHECK(each.is<pdp::Stopped>());
    CHECK_THAT(each.what(), StartsWith("stopped on request after step 8, with a checkpoint in "));
  }
  const auto found = pdp::checkpoint::checkpoints_in(folder / "run");
  REQUIRE(found.size() == 2);  // that of the first epoch, and this one
  CHECK(found.back().step == 8);
  std::vector<std::int64_t> steps;
  for (const auto& each : fit(strategy, {.directory = folder / "run"}, [&](int rank, std::int64_t step) {
         if (rank == 0) steps.push_back(step);
       }))
    CHECK(!each);
  CHECK(steps == std::vector<std::int64_t>{8, 9, 10, 11, 12, 13, 14});
}

TEST_CASE("A signal in the last step of an epoch or of a fit stops it after that epoch", "[train][stop]") {
  const files::TemporaryFolder folder;
  const std::int64_t last = GENERATE(3, 13, 14);
  for (const auto& each : fit(pdp::strategy::DataParallel{}, {.directory = folder / "run"}, [&](int rank, std::int64_t step) {
         if (rank == 0 && step == last) ::raise(SIGTERM);
       })) {
    CHECK(each.is<pdp::Stopped>());
    CHECK_THAT(each.what(), Contains(pdp::text("after step ", last == 3 ? 5 : 15, ',')));
  }
}

TEST_CASE("A signal during an evaluation in a callback stops the fit", "[train][stop]") {
  const files::TemporaryFolder folder;
  const AnyStrategy strategy = GENERATE(as<AnyStrategy>{}, pdp::strategy::DataParallel{},
                                        pdp::strategy::Pipeline<pdp::strategy::OneForwardOneBackward>{.micro_batches = 2});
  const bool after_epoch = GENERATE(true, false);
  const DefaultHandler without_catch;
  std::array<int, 2> evaluations{};
  for (const auto& each : pdp::testing::errors<Thread>(2, [&](Thread& world) {
         pdp::Trainer trainer{world, strategy, task, {.global_batch = 8, .seed = 1}};
         const auto evaluate = [&] {
           if (world.rank() == 1) ::raise(SIGTERM);
           ++evaluations[static_cast<std::size_t>(world.rank())];
           static_cast<void>(trainer.evaluate(samples()));
           ++evaluations[static_cast<std::size_t>(world.rank())];
         };
         trainer.fit(
             samples(), {.epochs = 3, .checkpoint = {.directory = folder / "run"}},
             [&](const pdp::Epoch&) {
               if (after_epoch) evaluate();
             },
             [&](std::int64_t step, const auto&) {
               if (!after_epoch && step == 2) evaluate();
             });
       })) {
    CHECK(each.is<pdp::Stopped>());
    CHECK_THAT(each.what(), StartsWith(pdp::text("stopped on request after step ", after_epoch ? 5 : 3, ", with a checkpoint in ")));
  }
  CHECK(evaluations == std::array<int, 2>{1, 1});
  CHECK(pdp::checkpoint::checkpoints_in(folder / "run").back().step == (after_epoch ? 5 : 3));
}

TEST_CASE("A rank can ask to stop a fit without checkpoints, and the next fit goes on", "[train][stop]") {
  for (const auto& [message, steps] : pdp::testing::ranks<Thread>(2, [&](Thread& world) {
         pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = 8, .seed = 1}};
         const auto fit = [&] {
           trainer.fit(
               samples(), {.epochs = 1}, [](const pdp::Epoch&) {},
               [&](std::int64_t step, const auto&) {
                 if (world.rank() == 1 && step == 1) trainer.request_stop();
               });
         };
         std::string stopped;
         try {
           fit();
         } catch (const pdp::Stopped& thrown) {
           stopped = thrown.what();
         }
         fit();
         return std::pair{stopped, trainer.steps()};
       })) {
    CHECK(message == "stopped on request after step 3");
    CHECK(steps == 5);
  }
}

TEST_CASE("A fit stops when its time is over", "[train][stop]") {
  const files::TemporaryFolder folder;
  for (const auto& each : fit(pdp::strategy::DataParallel{}, {.directory = folder / "run", .stop_after = 1s}, [&](int, std::int64_t) {
         std::this_thread::sleep_for(400ms);  // so the process is older than a second before the last step
       }))
    CHECK(each.is<pdp::Stopped>());
}

TEST_CASE("StopRequests calls the handler that was there before, and restores it", "[train][stop]") {
  struct sigaction before {
  }, own{}, after{};
  own.sa_handler = &handle;
  ::sigaction(SIGUSR1, &own, &before);
  handled = 0;
  {
    const pdp::StopRequests requests, same;
    CHECK(!requests.requested());
    ::raise(SIGUSR1);
    CHECK(requests.requested());
    CHECK(same.requested());
  }
  CHECK(handled == 1);
  ::sigaction(SIGUSR1, &before, &after);
  CHECK(after.sa_handler == &handle);
  CHECK(!pdp::StopRequests{}.requested());  // the old signal does not count again
}

TEST_CASE("A stop time is seconds, minutes, hours or days, as Slurm writes it", "[train][stop]") {
  const auto parse = [](const std::string& words) { return pdp::parse_stop_after("--stop-after", words).count(); };
  CHECK(parse("90") == 90);
  CHECK(parse("02:30") == 150);
  CHECK(parse("90:00") == 5400);
  CHECK(parse("23:50:00") == 85'800);
  CHECK(parse("6-12:00:01") == 561'601);
  for (const std::string words : {"", "x", "1:", ":1", "1:60", "1:2:3:4", "1-2", "1-2:3", "-5", "1.5", "1:2:-3", " 1"})
    CHECK_THROWS_WITH(parse(words), StartsWith("--stop-after must be a time such as 90 (seconds)"));
}

}  // namespace stop_test
