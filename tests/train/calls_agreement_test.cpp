#include <pdp/comm/any.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "erased.hpp"

namespace calls_agreement_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index, pdp::Shape;
using pdp::checkpoint::Tensor;
using Samples = pdp::data::InMemory<std::int32_t>;

namespace {

constexpr pdp::Task task{nn::Sequential{nn::Linear{6, 16}, nn::Tanh{}, nn::Linear{16, 3}}, pdp::loss::CrossEntropy{},
                         pdp::optim::Sgd{.lr = 0.2f}};
constexpr const char* same_calls = "; every rank of a training makes the same calls on its trainer, in the same order";
constexpr const char* give_same = "; give all ranks the same value";
constexpr const char* same_data = "; give all ranks the same dataset, or data::PerRank{part} if each rank has a part of its own";

Samples samples(std::size_t count, Shape shape = Shape{6}) {
  return {shape, pdp::testing::normal(count * 6, 11), std::vector<std::int32_t>(count, 1)};
}
const pdp::FitOptions quiet{.epochs = 1, .progress = false};

using Trainer = pdp::Trainer<comm::Any, AnyStrategy, std::remove_const_t<decltype(task)>>;
using Calls = std::function<void(Trainer&, bool)>;

/// Returns the error message of each rank that calls f(trainer, whether this is the last rank). A message is empty if nothing was thrown.
template <class C = comm::Thread>
std::vector<std::string> told(int size, const AnyStrategy& strategy, const Calls& f) {
  return erased::ranks<C>(size, [&](comm::Any& world) -> std::string {
    Trainer trainer{world, strategy, task, {.global_batch = 12, .seed = 5}};
    try {
      f(trainer, world.rank() == world.size() - 1);
    } catch (const pdp::ConfigError& error) {
      return error.what();
    } catch (const pdp::ParametersDiffer& error) {
      return error.what();
    }
    return "";
  });
}
void check_told(const std::vector<std::string>& messages, const std::string& expected) {
  for (const std::string& each : messages) CHECK(each == expected);
}

/// Returns the tensors of the model, with `changed` added to one number of one tensor.
std::vector<Tensor> tensors(float changed) {
  comm::Self self;
  pdp::Trainer trainer{self, Single{}, task, {.global_batch = 12, .seed = 77}};
  std::vector<Tensor> all = trainer.parameters();
  all[2].values[5] += changed;
  return all;
}

void with_every_strategy(const std::function<void(int size, const AnyStrategy& strategy)>& f) {
  f(2, DataParallel{});
  f(5, DataParallel{});
  for (const int stage : {1, 2, 3}) f(3, Zero{.stage = stage});
  f(2, Pipeline<>{.micro_batches = 2});
  f(2, TensorParallel{});
  f(4, Hybrid<>{.mesh = {2, 2, 1}, .micro_batches = 2});
}

}  // namespace

TEST_CASE("Trainer::set_parameters names the rank that has different values, and changes nothing", "[train][agreement]") {
  const auto same = tensors(0), other = tensors(1e-6f);
  with_every_strategy([&](int size, const AnyStrategy& strategy) {
    const std::string expected = pdp::text("rank ", size - 1, " was given another set of parameters than rank 0", give_same);
    check_told(told(size, strategy,
                    [&](Trainer& trainer, bool last) {
                      trainer.set_parameters(same, "a test");
                      try {
                        trainer.set_parameters(last ? other : tensors(3), "a test");
                      } catch (const pdp::ConfigError&) {
                        const auto kept = trainer.parameters();  // empty except on rank 0
                        for (std::size_t t = 0; t < kept.size(); ++t)
                          if (kept[t].values != same[t].values) throw std::runtime_error{"parameters have changed"};
                        throw;
                      }
                    }),
               expected);
    check_told(told(size, strategy,
                    [&](Trainer& trainer, bool) {
                      trainer.set_parameters(same, "a test");
                      trainer.fit(samples(40), quiet, [](const pdp::Epoch&) {});
                    }),
               "");
  });
}

TEST_CASE("Trainer names the rank that calls set_parameters while the others call fit or step", "[train][agreement]") {
  const auto given = tensors(0);
  with_every_strategy([&](int size, const AnyStrategy& strategy) {
    const std::string words = pdp::text("rank ", size - 1, " calls set_parameters, but rank 0 calls ");
    check_told(told(size, strategy,
                    [&](Trainer& trainer, bool last) {
                      if (last) trainer.set_parameters(given, "a test");
                      trainer.fit(samples(40), quiet, [](const pdp::Epoch&) {});
                    }),
               words + "fit" + same_calls);
    const auto x = pdp::testing::normal(12 * 6, 3);
    const std::vector<std::int32_t> classes(12, 2);
    check_told(told(size, strategy,
                    [&](Trainer& trainer, bool last) {
                      if (last) trainer.set_parameters(given, "a test");
                      static_cast<void>(trainer.step(std::span{x}.first(6), std::span{classes}.first(1)));
                    }),
               words + "step" + same_calls);
  });
}

TEST_CASE("Trainer::fit throws before the first step if one rank has changed its parameters", "[train][agreement]") {
  const auto messages = told(3, DataParallel{}, [](Trainer& trainer, bool last) {
    trainer.engine().stage().for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
      if (last && parameter.full_name() == "2.bias") values[1] = 4;
    });
    trainer.fit(samples(40), quiet, [](const pdp::Epoch&) {});
  });
  for (const std::string& each : messages)
    CHECK_THAT(each, StartsWith("2.bias differs between the ranks that hold it") && Contains("rank 2"));
}

TEST_CASE("Trainer::fit names the rank that has different arguments or data, on every rank", "[train][agreement]") {
  const auto check = [](const std::string& words, const Calls& fit, const char* remedy = give_same) {
    check_told(told(3, DataParallel{}, fit), "rank 2 was given " + words + remedy);
    check_told(told<comm::Tcp>(2, Pipeline<>{.micro_batches = 2}, fit), "rank 1 was given " + words + remedy);
  };
  const auto ignore = [](const pdp::Epoch&) {};
  check("epochs = 5, but rank 0 epochs = 3",
        [&](Trainer& trainer, bool last) { trainer.fit(samples(40), {.epochs = last ? 5 : 3, .progress = false}, ignore); });
  check(
      "samples in the dataset = 41, but rank 0 samples in the dataset = 40",
      [&](Trainer& trainer, bool last) { trainer.fit(samples(last ? 41 : 40), quiet, ignore); }, same_data);
  check("another shape of samples than rank 0", [&](Trainer& trainer, bool last) {
    trainer.fit(samples(40, last ? Shape{2, 3} : Shape{6}), quiet, ignore);
  });
  check("values in a sample = 3, but rank 0 values in a sample = 6", [&](Trainer& trainer, bool last) {
    trainer.fit(last ? Samples{Shape{3}, std::vector<float>(120), std::vector<std::int32_t>(40)} : samples(40), quiet, ignore);
  });
  check("shuffle = 0, but rank 0 shuffle = 1",
        [&](Trainer& trainer, bool last) { trainer.fit(samples(40), {.epochs = 1, .shuffle = !last, .progress = false}, ignore); });
}

TEST_CASE("Trainer names the rank that calls evaluate while the others call fit", "[train][agreement]") {
  check_told(told(3, Zero{.stage = 3},
                  [](Trainer& trainer, bool last) {
                    trainer.fit(samples(40), quiet, [](const pdp::Epoch&) {});
                    if (last)
                      static_cast<void>(trainer.evaluate(samples(40)));
                    else
                      trainer.fit(samples(40), quiet, [](const pdp::Epoch&) {});
                  }),
             pdp::text("rank 2 calls evaluate, but rank 0 calls fit", same_calls));
  check_told(told(2, DataParallel{}, [](Trainer& trainer, bool last) { static_cast<void>(trainer.evaluate(samples(last ? 30 : 40))); }),
             pdp::text("rank 1 was given samples in the dataset = 30, but rank 0 samples in the dataset = 40", same_data));
}

TEST_CASE("Trainer::step accepts different row counts, and makes calls for agreement only the first time", "[train][agreement]") {
  const auto x = pdp::testing::normal(12 * 6, 3);
  const std::vector<std::int32_t> classes(12, 2);
  pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& thread) {
    comm::Instrumented world{std::move(thread)};
    pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = 24, .seed = 5}};
    const auto calls = [&] {
      std::uint64_t sum = 0;
      for (std::size_t verb = 0; verb < comm::verbs; ++verb) sum += world.traffic(static_cast<comm::Verb>(verb)).calls;
      return sum;
    };
    const auto step = [&](std::size_t rows) {
      world.clear_traffic();
      static_cast<void>(trainer.step(std::span{x}.first(rows * 6), std::span{classes}.first(rows)));
      return calls();
    };
    const auto first = step(world.rank() == 0 ? 12 : 1), second = step(world.rank() == 0 ? 3 : 12), third = step(5);
    world.clear_traffic();
    static_cast<void>(trainer.engine().step({{x.data(), 5, 6}, std::span{classes}.first(5)}));
    const auto of_engine = calls();
    if (second != of_engine || third != of_engine || first <= of_engine)
      throw std::runtime_error{pdp::text("calls: ", first, ", ", second, ", ", third, ", of the engine ", of_engine)};
  });
}

TEST_CASE("Trainer rejects global_batch, threads and epochs out of range and names the range", "[train][bad input]") {
  const auto refused = [](auto&& f) { return pdp::testing::errors<comm::Thread>(1, f).front().what(); };
  for (const Index batch : {Index{0}, Index{-1}, Index{1} << 31, std::numeric_limits<Index>::max()})
    CHECK_THAT(refused([&](comm::Thread& world) {
                 pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = batch}};
               }),
               Contains(pdp::text("global_batch = ", batch, " was given; it must be from 1 to 2147483647")));
  for (const int threads : {0, -4, 1025, std::numeric_limits<int>::max()}) {
    const std::string words = pdp::text("expected threads from 1 to 1024, as in {.threads = 2}, found ", threads);
    CHECK_THAT(refused([&](comm::Thread& world) {
                 pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = 4, .threads = threads}};
               }),
               StartsWith(words));
    CHECK_THAT(refused([&](comm::Thread& world) {
                 pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = 4}, pdp::cpu::Cpu{.threads = threads}};
               }),
               StartsWith(words));
  }
  for (const int epochs : {-1, std::numeric_limits<int>::min()})
    CHECK_THAT(refused([&](comm::Thread& world) {
                 pdp::Trainer trainer{world, DataParallel{}, task, {.global_batch = 4}};
                 trainer.fit(samples(8), {.epochs = epochs, .progress = false}, [](const pdp::Epoch&) {});
               }),
               StartsWith(pdp::text("epochs = ", epochs, " was given; fit takes 0 to ")));
}

}  // namespace calls_agreement_test
