#include <pdp/comm/any.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/data_division.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace std::chrono_literals;

namespace train_divergence_test {

constexpr pdp::Task task{nn::Sequential{nn::Linear{6, 8}, nn::Tanh{}, nn::Linear{8, 8}, nn::Tanh{}, nn::Linear{8, 3}},
                         pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
constexpr int steps = 6, rows = 8;

using Trainer = pdp::Trainer<comm::Any, pdp::strategy::Pipeline<>, std::remove_const_t<decltype(task)>>;

/// Trains a pipeline of three ranks in which rank 1 calls `other` instead of its third step. Checks that every rank throws
/// CommunicationError. Ranks must find a divergence within 2 s; the test allows four times as long on a busy machine.
template <class Comm>
void diverge(const std::string& name, const std::function<void(comm::Any&, Trainer&)>& other) {
  const auto x = pdp::testing::normal(rows * 6, 3);
  const std::vector<std::int32_t> targets(rows, 1);
  std::array<int, 3> made{};  // steps, by rank
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<Comm>(
      3,
      [&](Comm& group) {
        comm::Any world = comm::Any::borrow(group);
        Trainer trainer{world, pdp::strategy::Pipeline<>{.micro_batches = 2}, task, {.global_batch = rows, .seed = 1}};
        for (int step = 0; step < steps; ++step) {
          if (world.rank() == 1 && step == 2) {
            other(world, trainer);
          } else {
            trainer.step(x, targets);
            ++made[static_cast<std::size_t>(world.rank())];
          }
        }
      },
      300s);
  INFO(name);
  CHECK(std::chrono::steady_clock::now() - begin < 4 * 2s);
  for (const int steps_of_rank : made) CHECK(steps_of_rank <= 2);  // no rank completes a step with messages of another step
  for (const auto& error : errors) {
    INFO(error.what());
    CHECK(error.template is<pdp::CommunicationError>());
  }
}

}  // namespace train_divergence_test

using namespace train_divergence_test;

TEMPLATE_TEST_CASE("Trainer throws on every rank within seconds if the ranks of a pipeline diverge", "[train][divergence]", comm::Thread,
                   comm::Tcp) {
  diverge<TestType>("a rank evaluates while the others make a step", [](comm::Any&, Trainer& trainer) {
    const pdp::data::InMemory<std::int32_t> data{pdp::Shape{6}, pdp::testing::normal(24 * 6, 4), std::vector<std::int32_t>(24, 2)};
    static_cast<void>(trainer.accuracy(data));
  });
  diverge<TestType>("a rank makes a call of its own", [](comm::Any& world, Trainer&) { world.barrier(); });
  diverge<TestType>("a rank swallows the error of a step", [](comm::Any&, Trainer& trainer) {
    try {
      trainer.step(std::vector<float>(5), std::vector<std::int32_t>(1));
    } catch (const pdp::Error&) {
    }
  });
}

TEMPLATE_TEST_CASE("Trainer::step throws on every rank after one rank has swallowed the LabelError of fit", "[train][divergence]",
                   comm::Thread, comm::Tcp) {
  // The wrong class is in the first batch, and is none of the samples that the ranks compare.
  constexpr pdp::Index samples = 100 * rows;
  const std::vector<pdp::Index> compared = pdp::detail::samples_to_compare(samples, 1);
  pdp::Index at = 0;
  while (std::ranges::find(compared, at) != compared.end()) ++at;
  REQUIRE(at < rows);
  std::array<bool, 2> stepped{};
  const auto errors = pdp::testing::errors<TestType>(
      2,
      [&](TestType& group) {
        comm::Any world = comm::Any::borrow(group);
        const bool wrong = world.rank() == 1;
        const auto x = pdp::testing::normal(rows * 6, 3);
        std::vector<std::int32_t> classes(samples, 1);
        if (wrong) classes[static_cast<std::size_t>(at)] = 9;
        const pdp::data::InMemory<std::int32_t> data{pdp::Shape{6}, pdp::testing::normal(samples * 6, 3), classes};
        Trainer trainer{world, pdp::strategy::Pipeline<>{}, task, {.global_batch = rows, .seed = 1}};
        try {
          trainer.fit(data, {.epochs = 1, .shuffle = false}, [](const pdp::Epoch&) {});
        } catch (const pdp::LabelError&) {
          if (!wrong) throw;
        }
        trainer.step(x, std::vector<std::int32_t>(rows, 1));
        stepped[static_cast<std::size_t>(world.rank())] = true;
      },
      300s);
  CHECK_FALSE(stepped[0]);
  CHECK_FALSE(stepped[1]);
  for (const auto& error : errors) {
    INFO(error.what());
    CHECK(error.template is<pdp::CommunicationError>());
  }
}
