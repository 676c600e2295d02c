#include <pdp/comm/any.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/trainer.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "erased.hpp"

namespace agreement_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace plan = pdp::plan;
namespace strategy = pdp::strategy;

namespace {

/// All arguments of a rank's Trainer.
struct Given {
  std::vector<pdp::Index> widths{6, 16, 16, 16, 8};
  pdp::nn::Linear layers{};
  pdp::optim::AdamW optimizer{};
  pdp::optim::Linear schedule{.steps = 100, .to = 0.5f};
  strategy::AnyStrategy strategy = strategy::DataParallel{};
  pdp::TrainerOptions options{.global_batch = 12, .seed = 5, .clip_norm = 1};
};

/// Returns the error message of each rank if the last rank has a changed argument. A message is empty if nothing was thrown.
template <class C = comm::Thread>
std::vector<std::string> told(int size, const std::function<void(Given&)>& change) {
  return erased::ranks<C>(size, [&](comm::Any& world) -> std::string {
    Given given;
    if (world.rank() == world.size() - 1) change(given);
    const pdp::Task task{pdp::nn::MultilayerPerceptron{given.widths, pdp::nn::Tanh{}, given.layers}, pdp::loss::CrossEntropy{},
                         given.optimizer, given.schedule};
    try {
      pdp::Trainer trainer{world, given.strategy, task, given.options};
      return trainer.plan().units.empty() ? "a rank holds nothing" : "";
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
  });
}

}  // namespace

TEST_CASE("Trainer throws on every rank and names the argument and the rank that differ", "[train][agreement]") {
  const int size = GENERATE(2, 5);
  const auto is_told = [size](const std::string& words, const std::function<void(Given&)>& change) {
    const std::string expected = pdp::text("rank ", size - 1, " was given ", words, "; give all ranks the same value");
    for (const std::string& each : told(size, change)) CHECK(each == expected);
  };
  is_told("global_batch = 24, but rank 0 global_batch = 12", [](Given& given) { given.options.global_batch = 24; });
  is_told("seed = 4, but rank 0 seed = 5", [](Given& given) { given.options.seed = 4; });
  is_told("clip_norm = 1.5, but rank 0 clip_norm = 1", [](Given& given) { given.options.clip_norm = 1.5; });
  is_told("another non_finite than rank 0", [](Given& given) { given.options.non_finite = plan::NonFinite::stop; });
  is_told("another loss_scaling than rank 0", [](Given& given) { given.options.loss_scaling = pdp::LossScaling{}; });
  is_told("another model than rank 0", [](Given& given) { given.widths = {6, 16, 32, 16, 8}; });
  is_told("another model than rank 0", [](Given& given) { given.layers.bias = false; });
  is_told("another model than rank 0", [](Given& given) { given.layers.initializer = pdp::nn::kaiming_normal; });
  is_told("another model than rank 0", [](Given& given) { given.layers.bias_initializer = pdp::nn::zeros; });
  is_told("another optimizer than rank 0", [](Given& given) { given.optimizer.lr = 1.001e-3f; });
  is_told("another optimizer than rank 0", [](Given& given) { given.optimizer.beta1 = 0.95f; });
  is_told("another optimizer than rank 0", [](Given& given) { given.optimizer.weight_decay = 0.1f; });
  is_told("another optimizer than rank 0", [](Given& given) { given.optimizer.lr = std::numeric_limits<float>::quiet_NaN(); });
  is_told("another schedule than rank 0", [](Given& given) { given.schedule.steps = 200; });
  is_told("another schedule than rank 0", [](Given& given) { given.schedule.to = 0.4f; });
  is_told("another strategy than rank 0",
          [](Given& given) { given.strategy = strategy::DataParallel{.accumulate = 0}; });  // rejected by the strategy itself
  is_told("another strategy than rank 0", [](Given& given) { given.strategy = strategy::Zero{.stage = 2}; });
  is_told("another strategy than rank 0", [](Given& given) { given.strategy = strategy::DataParallel{.accumulate = 2}; });
  is_told("another strategy than rank 0", [](Given& given) { given.strategy = strategy::Pipeline<>{.micro_batches = 3}; });
}

TEST_CASE("numbers_of a model differ if its initializers differ in any member or function", "[train][agreement]") {
  const auto numbers = [](const nn::Initializer& initializer) {
    return pdp::detail::numbers_of(nn::Sequential{nn::Linear{.in = 3, .out = 2, .initializer = initializer}}, pdp::Shape{3});
  };
  const auto squares =
      nn::own_values([](pdp::random::Key, pdp::Index i, pdp::Index, pdp::Index) { return static_cast<double>(i * i + 1); });
  const auto same = nn::own_values([](pdp::random::Key, pdp::Index i, pdp::Index, pdp::Index) { return i == 0 ? 1.0 : 2.0; });
  const auto other =
      nn::own_values([](pdp::random::Key key, pdp::Index i, pdp::Index, pdp::Index) { return pdp::random::normal<double>(key, i); });
  const std::vector<nn::Initializer> all{nn::normal(2), nn::normal(2, 1),    nn::truncated_normal(2), nn::uniform(2), nn::xavier_uniform,
                                         nn::zeros,     nn::kaiming_uniform, nn::orthogonal(2),       squares,        other};
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b) CHECK((numbers(all[a]) == numbers(all[b])) == (a == b));
  CHECK(numbers(squares) == numbers(same));  // equal values, as of one function at another address
}

TEST_CASE("numbers_of a model differ if other layers are frozen", "[train][agreement][frozen]") {
  const auto numbers = [](const auto& model) { return pdp::detail::numbers_of(model, pdp::Shape{3}); };
  using namespace nn;
  CHECK(numbers(Sequential{Linear{3, 3}, Tanh{}}) != numbers(Sequential{Frozen{Linear{3, 3}}, Tanh{}}));
  CHECK(numbers(Residual{Linear{3, 3}}) != numbers(Residual{Frozen{Linear{3, 3}}}));
  CHECK(numbers(Sequential{Linear{3, 3}, Tanh{}}) != numbers(Sequential{Linear{3, 3}, Frozen{Tanh{}}}));
}

TEST_CASE("Trainer over Tcp names the rank that has a different seed, on every rank", "[train][agreement]") {
  for (const std::string& each : told<comm::Tcp>(3, [](Given& given) { given.options.seed = 4; }))
    CHECK_THAT(each, StartsWith("rank 2 was given seed = 4, but rank 0 seed = 5; "));
}

TEST_CASE("Trainer on a single rank accepts any seed", "[train][agreement]") {
  CHECK(told(1, [](Given& given) { given.options.seed = 4; }).front().empty());
}

}  // namespace agreement_test
