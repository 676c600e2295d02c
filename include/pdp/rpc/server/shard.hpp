#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/network/optimizer_state.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/promise.hpp>

namespace pdp::rpc {

struct ParameterServerOptions {
  static constexpr int unbounded = std::numeric_limits<int>::max();

  /// The number of workers that train from the start. Their numbers are 0, 1, ....
  int workers = 1;
  /// How many steps a worker may be ahead of the slowest one. 0: training is synchronous, and each update adds the gradients of all
  /// workers. Otherwise each gradient is an update of its own, in the order of arrival. `unbounded`: workers never wait (Hogwild).
  int max_staleness = 0;
};
static_assert(Travels<ParameterServerOptions>);

/// A part of the parameters of a ParameterServer, on one rank. The bound on staleness is that of Ho et al., "More effective distributed ML
/// via a stale synchronous parallel parameter server", NIPS 2013.
template <optim::Optimizer Rule, optim::Schedule Schedule>
class ParameterShard {
 public:
  ParameterShard(const Rule& rule, const Schedule& schedule, std::vector<float> values, const ParameterServerOptions& options)
      : rule_{rule},
        schedule_{schedule},
        options_{options},
        values_{std::move(values)},
        state_{cpu::Cpu{}, as_index(optim::needed_state_fields(rule) * values_.size())} {
    for (int worker = 0; worker < options.workers; ++worker) pushed_[worker] = 0;
  }

  /// Adds a worker, which is as far as the slowest one.
  void join(int worker) { pushed_.emplace(worker, pushed_.empty() ? steps_ : slowest()); }
  /// Removes a worker, for which the others then no longer wait.
  void leave(int worker) {
    check(worker);
    pushed_.erase(worker);  // its last gradient remains a part of the next update
    advance();
  }
  /// Returns the values, when the worker is not too far ahead of the slowest one.
  Promise<std::vector<float>> pull(int worker) {
    check(worker);
    const Promise<std::vector<float>> values;
    waiting_.emplace_back(worker, values);
    advance();
    return values;
  }
  /// Takes the gradient of a worker's step.
  void push(int worker, std::vector<float> gradient) {
    check(worker);
    if (gradient.size() != values_.size())
      throw ShapeError{text("a gradient of ", gradient.size(), " values was pushed for ", values_.size(), " parameters")};
    if (gradients_.contains(worker))
      throw Error{text("worker ", worker,
                       " has pushed the gradients of two steps, but other workers have not pushed the first; call pull() "
                       "before each step")};
    ++pushed_.at(worker);
    if (options_.max_staleness > 0) {
      const float* const one = gradient.data();
      apply({&one, 1});
    } else {
      gradients_[worker] = std::move(gradient);
    }
    advance();
  }
  /// Returns the values now.
  [[nodiscard]] std::vector<float> values() const { return values_; }
  /// Returns the number of updates.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  void check(int worker) const {
    if (!pushed_.contains(worker))
      throw ConfigError{text("worker ", worker, " does not take part in this training: it has left, or was not added")};
  }
  [[nodiscard]] std::int64_t slowest() const {
    return std::ranges::min_element(pushed_, {}, [](const auto& each) { return each.second; })->second;
  }
  void apply(std::span<const float* const> gradients) {
    state_.apply(cpu::Cpu{}, rule_, {.lr_factor = schedule_.factor(steps_)}, 0, values_, gradients);
    ++steps_;
  }
  /// Makes the update if all gradients are here, and answers the pulls that need not wait any longer.
  void advance() {
    const auto has_pushed = [this](const auto& each) { return gradients_.contains(each.first); };
    if (!gradients_.empty() && std::ranges::all_of(pushed_, has_pushed)) {
      std::vector<const float*> all;
      for (const auto& [worker, gradient] : gradients_) all.push_back(gradient.data());
      apply(all);
      gradients_.clear();
    }
    const std::int64_t least = pushed_.empty() ? 0 : slowest();
    std::erase_if(waiting_, [&](auto& each) {
      const auto found = pushed_.find(each.first);
      if (found != pushed_.end() && found->second - least > options_.max_staleness) return false;
      each.second.set(values_);
      return true;
    });
  }

  Rule rule_;
  Schedule schedule_;
  ParameterServerOptions options_;
  std::vector<float> values_;
  OptimizerState<cpu::Cpu> state_;
  std::map<int, std::int64_t> pushed_;           // steps of each worker
  std::map<int, std::vector<float>> gradients_;  // of the next update, by worker
  std::vector<std::pair<int, Promise<std::vector<float>>>> waiting_;
  std::int64_t steps_ = 0;
};

}  // namespace pdp::rpc
