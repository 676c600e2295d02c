#include <pdp/comm/any.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "erased.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace channels_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::engine;
using namespace pdp::strategy;

namespace {

constexpr nn::Sequential model{nn::Linear{8, 16},  nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{},
                               nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 16}, nn::Tanh{}, nn::Linear{16, 4}};

/// A Thread communicator that declares its messages to be one queue.
struct Queued : comm::Thread {
  static constexpr bool queues_messages = true;

  Queued(comm::Thread&& group) : comm::Thread{std::move(group)} {}
  [[nodiscard]] Queued split(int color, int key) { return comm::Thread::split(color, key); }
  static std::vector<Queued> world(int size) {
    std::vector<Queued> ranks;
    for (comm::Thread& each : comm::Thread::world(size)) ranks.emplace_back(std::move(each));
    return ranks;
  }
};
static_assert(comm::QueuesMessages<Queued> && !comm::QueuesMessages<comm::Thread>);

/// Runs f(world) on ranks, with a world of type comm::Any unless the communicator is Queued.
template <class C, class F>
auto on_ranks(int size, F&& f) {
  if constexpr (std::same_as<C, Queued>)
    return pdp::testing::ranks<C>(size, f);
  else
    return erased::ranks<C>(size, f);
}

/// A schedule in which two ranks disagree: rank 0 sends its micro-batches in order, rank 1 receives the last one first.
struct Contrary {
  static constexpr int chunks = 1;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    if (at.rank == 0) return GPipe{}.actions(at);
    std::vector<Action> list;
    for (int m = at.micro_batches - 1; m >= 0; --m) list.insert(list.end(), {{Action::Kind::forward, m}, {Action::Kind::backward, m}});
    return list;
  }
};

/// Returns the channels of all ranks, and checks that both ends of each have its messages in the same order.
std::vector<Channel> channels_of_all(const std::vector<Plan>& all) {
  std::vector<Channel> channels;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank)
    for (const Channel& channel : channels_of(all[static_cast<std::size_t>(rank)], rank, 0)) {
      if (std::ranges::find(channels, channel) == channels.end()) channels.push_back(channel);
      const auto order = [&](int end) { return messages_on(channel, all[static_cast<std::size_t>(end)], end, 0); };
      CHECK_FALSE(order(channel.from).empty());
      CHECK(order(channel.from) == order(channel.to));
    }
  return channels;
}

}  // namespace

TEST_CASE("rounds_of splits the channels of a chain into four rounds, those of an odd ring into six", "[parallel][channels]") {
  for (int size = 2; size <= 9; ++size) {
    std::vector<Channel> chain;
    for (int rank = 0; rank + 1 < size; ++rank) {
      chain.push_back({rank, rank + 1, Tensor::activation});
      chain.push_back({rank + 1, rank, Tensor::gradient});
    }
    CHECK(rounds_of(chain).size() == (size == 2 ? 2 : 4));
    if (size == 2) continue;
    chain.push_back({size - 1, 0, Tensor::activation});
    chain.push_back({0, size - 1, Tensor::gradient});
    CHECK(rounds_of(chain).size() == (size % 2 == 0 ? 4 : 6));
  }
  CHECK(rounds_of({}).empty());
}

TEST_CASE("rounds_of puts each channel into one round, and each rank into a round at most once", "[parallel][channels]") {
  for (int seed = 0; seed < 50; ++seed) {
    const auto drawn = support::normal(40, seed);
    std::vector<Channel> channels;
    for (std::size_t i = 0; i + 1 < drawn.size(); i += 2) {
      const auto rank_of = [](float value) { return static_cast<int>(value * 1000) & 7; };
      const Channel channel{rank_of(drawn[i]), rank_of(drawn[i + 1]), i % 4 == 0 ? Tensor::activation : Tensor::gradient};
      if (channel.from != channel.to && std::ranges::find(channels, channel) == channels.end()) channels.push_back(channel);
    }
    std::size_t found = 0;
    for (const std::vector<Channel>& round : rounds_of(channels)) {
      std::set<int> ranks;
      for (const Channel& channel : round) {
        CHECK(ranks.insert(channel.from).second);
        CHECK(ranks.insert(channel.to).second);
        CHECK(std::ranges::find(channels, channel) != channels.end());
        ++found;
      }
    }
    CHECK(found == channels.size());
  }
}

TEST_CASE("messages_on gives both ends of a channel the same order, for every schedule", "[parallel][channels]") {
  const nn::Outline outline = nn::outline(model, pdp::Shape{8});
  const auto check = [&](const auto& strategy, int ranks) {
    CAPTURE(ranks, strategy.micro_batches);
    const std::vector<Plan> all = plans(strategy, outline, ranks);
    CHECK(verify(outline, all));  // no deadlock: a message can only hold up messages that both ends start later
    CHECK_FALSE(channels_of_all(all).empty());
  };
  for (int ranks = 2; ranks <= 5; ++ranks)
    for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      check(Pipeline<GPipe>{.micro_batches = micro_batches}, ranks);
      check(Pipeline<>{.micro_batches = micro_batches}, ranks);
      check(Pipeline<>{.micro_batches = micro_batches, .recompute = true, .join_weights = 3}, ranks);
      check(Pipeline<ZeroBubble>{.micro_batches = micro_batches, .join_weights = 2}, ranks);
      check(Pipeline<Interleaved>{.micro_batches = micro_batches}, ranks);
    }
}

TEST_CASE("Pipeline and Hybrid give equal losses with and without channels for messages", "[parallel][channels][equivalence]") {
  for (const int size : {2, 3, 4}) {
    const auto check = [&](const AnyStrategy& strategy) {
      CAPTURE(size);
      const auto losses_of = [&]<class Comm>() {
        return on_ranks<Comm>(size, [&](auto& world) {
          pdp::Trainer trainer{world, strategy, tasks::residual_classifier(6), {.global_batch = 32, .seed = 3}};
          const auto data = tasks::samples(100);
          std::vector<double> losses;
          trainer.fit(
              data, {.epochs = 2}, [](const pdp::Epoch&) {},
              [&](std::int64_t, const auto& totals) { losses.push_back(totals.mean_loss()); });
          losses.push_back(trainer.evaluate(data).mean_loss());
          return losses;
        });
      };
      const auto expected = losses_of.template operator()<comm::Thread>();
      CHECK(expected.front().size() > 3);
      CHECK(losses_of.template operator()<Queued>() == expected);
    };
    check(Pipeline<>{.micro_batches = 3});
    check(Pipeline<Interleaved>{.micro_batches = 4});
    if (size == 4) check(Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2});
  }
}

TEST_CASE("Trainer rejects a plan that receives in another order than it sends if messages are queued", "[parallel][channels][bad input]") {
  const auto train = [](auto& world) {
    const AnyStrategy strategy{Pipeline<Contrary>{.micro_batches = 2}};
    pdp::Trainer trainer{world, strategy, tasks::residual_classifier(2), {.global_batch = 32, .seed = 3}};
    trainer.fit(tasks::samples(64), {.epochs = 1}, [](const pdp::Epoch&) {});
  };
  for (const auto& error : pdp::testing::errors<comm::Thread>(2, [&](comm::Thread& world) {
         comm::Any any = comm::Any::borrow(world);
         train(any);
       }))
    CHECK_FALSE(error);
  const auto errors = pdp::testing::errors<Queued>(2, [&](Queued& world) { train(world); });
  CHECK(std::ranges::any_of(errors, [](const auto& error) { return error.template is<pdp::PlanError>(); }));
  for (const auto& error : errors)  // one rank may learn of it only from the failure of the other
    CHECK_THAT(error.what(), Contains("rank 1 of group 0 receives activations from rank 0 in another order than that rank sends them") &&
                                 Contains("start them in the same order on both ranks"));
}

}  // namespace channels_test
