// Trains a policy that balances a pole on a cart: actors on the workers play episodes with the newest parameters that they have, while the
// learner on the master trains with the episodes that have arrived.
//
//   actor_learner --ranks 3                 the learner and two actors
//   actor_learner --threads 5 --updates 200

#include <array>
#include <cmath>
#include <random>

#include <pdp/core/step_state.hpp>
#include <pdp/pdp.hpp>
#include <pdp/rpc/parameter_server.hpp>
#include <pdp/rpc/replica.hpp>
#include <pdp/rpc/run.hpp>

#include "common/command_line.hpp"
#include "common/run.hpp"

namespace rpc = pdp::rpc;
namespace nn = pdp::nn;
using pdp::Index;

/// A cart with a pole, as in Barto, Sutton, Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems",
/// IEEE Transactions on Systems, Man, and Cybernetics, 1983. An episode ends if the pole falls, the cart leaves the track, or after 200
/// steps.
class CartPole {
 public:
  using State = std::array<float, 4>;  // position and speed of the cart, angle and angular speed of the pole
  static constexpr int longest = 200;

  explicit CartPole(std::uint64_t seed) : random_{seed} {}

  const State& reset() {
    std::uniform_real_distribution<float> start{-0.05f, 0.05f};
    for (float& each : state_) each = start(random_);
    steps_ = 0;
    return state_;
  }
  /// Pushes the cart to the left (0) or to the right (1). Returns whether the episode goes on.
  bool step(int action) {
    constexpr float gravity = 9.8f, cart = 1.0f, pole = 0.1f, length = 0.5f, force = 10.0f, seconds = 0.02f;
    auto& [x, v, angle, turn] = state_;
    const float push = action == 1 ? force : -force, cosine = std::cos(angle), sine = std::sin(angle);
    const float common = (push + pole * length * turn * turn * sine) / (cart + pole);
    const float turning = (gravity * sine - cosine * common) / (length * (4.0f / 3.0f - pole * cosine * cosine / (cart + pole)));
    const float acceleration = common - pole * length * turning * cosine / (cart + pole);
    x += seconds * v;
    v += seconds * acceleration;
    angle += seconds * turn;
    turn += seconds * turning;
    return ++steps_ < longest && std::abs(x) < 2.4f && std::abs(angle) < 0.2095f;
  }
  [[nodiscard]] const State& state() const { return state_; }
  /// Returns a number in [0, 1).
  float chance() { return std::uniform_real_distribution<float>{}(random_); }

 private:
  std::mt19937_64 random_;
  State state_{};
  int steps_ = 0;
};

/// The loss of a policy gradient (Williams, "Simple statistical gradient-following algorithms", Machine Learning 1992): the mean of
/// -advantage * log(probability of the action). The target of a row is {action, advantage}.
struct PolicyGradient {
  using Target = float;
  static constexpr bool has_classes = false;
  [[nodiscard]] constexpr Index target_elements(Index) const { return 2; }

  void operator()(const pdp::cpu::Cpu&, pdp::Matrix<const float> output, std::span<const float> targets, const double* scale,
                  pdp::Matrix<float> gradient, pdp::LossSums* sums) const {
    for (Index row = 0; row < output.rows; ++row) {
      const float* const logits = output.row(row);
      const std::size_t at = 2 * pdp::as_size(row);
      const auto action = static_cast<Index>(targets[at]);
      const float advantage = targets[at + 1], largest = std::max(logits[0], logits[1]);
      const float sum = std::exp(logits[0] - largest) + std::exp(logits[1] - largest);
      sums->loss += static_cast<double>(advantage * (std::log(sum) + largest - logits[action]));
      if (gradient.data == nullptr) continue;
      for (Index each = 0; each < 2; ++each)
        gradient.row(row)[each] =
            static_cast<float>(*scale) * advantage * (std::exp(logits[each] - largest) / sum - (each == action ? 1.0f : 0.0f));
    }
  }
};

auto policy() { return nn::Sequential{nn::Linear{4, 32}, nn::Tanh{}, nn::Linear{32, 2}}; }
using Replica = rpc::Replica<decltype(policy()), PolicyGradient>;

/// Episodes, one after another.
struct Episodes {
  std::vector<float> states;  // [steps, 4]
  std::vector<float> actions;
  std::vector<std::int32_t> lengths;
};

/// An actor: it plays episodes in an environment of its own.
class Actor {
 public:
  Actor(std::uint64_t seed, int number) : game_{seed * 1000 + static_cast<std::uint64_t>(number)} {}

  Episodes play(std::span<const float> parameters, int episodes) {
    std::ranges::copy(parameters, policy_.values().begin());
    Episodes played;
    for (int i = 0; i < episodes; ++i) {
      game_.reset();
      std::int32_t steps = 0;
      for (bool goes_on = true; goes_on; ++steps) {
        const CartPole::State state = game_.state();
        const pdp::rpc::OwnedMatrix logits = policy_.predict({state.data(), 1, 4});
        const int action = game_.chance() < 1 / (1 + std::exp(logits.values[0] - logits.values[1])) ? 1 : 0;
        played.states.insert(played.states.end(), state.begin(), state.end());
        played.actions.push_back(static_cast<float>(action));
        goes_on = game_.step(action);
      }
      played.lengths.push_back(steps);
    }
    return played;
  }

 private:
  CartPole game_;
  Replica policy_{policy(), PolicyGradient{}, 0};
};

/// Returns the targets of PolicyGradient. The advantage of a step is its discounted return, less the mean return of all episodes from the
/// same step on, in units of the standard deviation.
std::vector<float> targets_of(const Episodes& episodes) {
  constexpr float discount = 0.99f;
  std::vector<float> advantages(episodes.actions.size());
  std::array<float, CartPole::longest> sums{}, counts{};
  const auto each_step = [&](const auto& visit) {
    for (std::size_t episode = 0, begin = 0; episode < episodes.lengths.size(); begin += pdp::as_size(episodes.lengths[episode++]))
      for (std::size_t step = pdp::as_size(episodes.lengths[episode]); step-- > 0;)
        visit(step, advantages[begin + step], step + 1 == pdp::as_size(episodes.lengths[episode]));
  };
  float ahead = 0, square = 0;
  each_step([&](std::size_t step, float& value, bool is_last) {
    value = ahead = 1 + (is_last ? 0 : discount * ahead);
    sums[step] += value;
    ++counts[step];
  });
  each_step([&](std::size_t step, float& value, bool) {
    value -= sums[step] / counts[step];
    square += value * value;
  });
  const float deviation = std::sqrt(square / static_cast<float>(advantages.size())) + 1e-3f;
  std::vector<float> targets;
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    targets.push_back(episodes.actions[i]);
    targets.push_back(advantages[i] / deviation);
  }
  return targets;
}

struct ActorFlags {
  pdp::launch::Options launch;
  int updates = 150, episodes = 10;
  std::uint64_t seed = 0;
};

void learn(rpc::Node& node, const ActorFlags& flags) {
  Replica policy_here{policy(), PolicyGradient{}, flags.seed};
  std::vector<rpc::Remote<Actor>> actors;
  for (int i = 1; i < node.size(); ++i) actors.push_back(node.remote<Actor>(node.name(i), flags.seed, i));
  // The learner's own parameters: a server on this rank with one worker that never waits.
  rpc::ParameterServer server{node, {node.name()}, pdp::optim::Adam{.lr = 0.01f}, policy_here.values(), {.workers = 1}};
  auto client = server.client(0);

  std::vector<rpc::Future<Episodes>> playing;
  const auto play = [&](std::size_t actor) {  // with the newest parameters
    const auto values = policy_here.values();
    return actors[actor].async<&Actor::play>(std::vector<float>{values.begin(), values.end()}, flags.episodes);
  };
  for (std::size_t i = 0; i < actors.size(); ++i) playing.push_back(play(i));
  double mean = 0;
  for (int update = 1; update <= flags.updates; ++update) {
    const std::size_t next = pdp::as_size(update - 1) % playing.size();  // the actor that has begun first
    const Episodes episodes = playing[next].get();
    playing[next] = play(next);  // it plays while this rank learns
    const std::vector<float> targets = targets_of(episodes);
    policy_here.gradient_of({episodes.states.data(), pdp::as_index(episodes.actions.size()), 4}, targets);
    client.push(policy_here.gradient());
    client.pull(policy_here.values());
    const double steps = static_cast<double>(episodes.actions.size()) / static_cast<double>(episodes.lengths.size());
    mean = update == 1 ? steps : 0.9 * mean + 0.1 * steps;
    if (update % 10 == 0) pdp::print(pdp::comm::Self{}, "Update {} || mean length of an episode {:.1f}", update, mean);
  }
  for (auto& each : playing) each.get();
}

int main(int argc, char** argv) {
  ActorFlags flags;
  examples::CommandLine line{argc, argv, "Trains a policy that balances a pole, with actors on the workers and the learner on the master."};
  line.number("--updates", flags.updates, 1, 1'000'000, "updates of the parameters");
  line.number("--episodes", flags.episodes, 1, 10'000, "episodes that an actor plays for an update");
  line.number("--seed", flags.seed, std::uint64_t{0}, std::uint64_t{1} << 40, "seed of the initial parameters and of the environments");
  line.ranks(flags.launch, " (default: 3, the learner and two actors)");
  line.read([&] {
    if (!flags.launch.ranks_are_given()) flags.launch.ranks = 3;
  });
  return examples::run(flags.launch, [&](pdp::comm::Any& world) {
    if (world.size() < 2) throw pdp::UsageError{"actor_learner needs at least 2 ranks: the learner and an actor"};
    std::vector<std::string> names{"learner"};
    for (int i = 1; i < world.size(); ++i) names.push_back(pdp::text("actor", i));
    rpc::serve(world, names, [&](rpc::Node& node) { learn(node, flags); });
  });
}
