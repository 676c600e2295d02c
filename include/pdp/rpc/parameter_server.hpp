#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/server/shard.hpp>

namespace pdp::rpc {

/// The access of one worker to a ParameterServer. It travels, so a remote object that trains can get it as an argument. Move-only. Use it
/// on the thread of its rank.
template <class Shard>
class ParameterClient {
 public:
  ParameterClient() = default;
  ParameterClient(ParameterClient&&) noexcept = default;
  ParameterClient& operator=(ParameterClient&&) noexcept = default;
  ParameterClient(int worker, std::vector<Remote<Shard>> shards, std::vector<std::size_t> ends)
      : worker_{worker}, shards_{std::move(shards)}, ends_{std::move(ends)} {}

  [[nodiscard]] int worker() const { return worker_; }
  [[nodiscard]] std::size_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  /// Copies the parameters to `values`. Waits until this worker is not too far ahead of the slowest one, and for its own push(). Throws
  /// Timeout at the deadline of the communicator if that takes too long, and the error of a push().
  void pull(std::span<float> values) {
    check(values.size());
    std::vector<Future<std::vector<float>>> parts;
    for (const Remote<Shard>& shard : shards_) parts.push_back(shard.template async<&Shard::pull>(worker_));
    wait_for_push();
    for (std::size_t i = 0; i < parts.size(); ++i) std::ranges::copy(parts[i].get(), values.begin() + begin(i));
  }
  /// Sends a copy of the gradient of a step.
  void push(std::span<const float> gradient) {
    check(gradient.size());
    wait_for_push();
    for (std::size_t i = 0; i < shards_.size(); ++i)
      pushed_.push_back(shards_[i].template async<&Shard::push>(
          worker_, std::vector<float>{gradient.begin() + begin(i), gradient.begin() + static_cast<std::ptrdiff_t>(ends_[i])}));
  }
  /// Ends the part of this worker. The others then no longer wait for it.
  void leave() {
    wait_for_push();
    for (const Remote<Shard>& shard : shards_) shard.template sync<&Shard::leave>(worker_);
  }

  void travel(auto&& visit) { visit(worker_, shards_, ends_); }

 private:
  [[nodiscard]] std::ptrdiff_t begin(std::size_t shard) const { return shard == 0 ? 0 : static_cast<std::ptrdiff_t>(ends_[shard - 1]); }
  void check(std::size_t elements) const {
    if (elements != size()) throw ShapeError{text(elements, " values were given for the ", size(), " parameters of a ParameterServer")};
  }
  void wait_for_push() {
    auto pushed = std::exchange(pushed_, {});
    for (Future<void>& each : pushed) each.get();
  }

  int worker_ = -1;
  std::vector<Remote<Shard>> shards_;
  std::vector<std::size_t> ends_;  // of the shards, in the array of all parameters
  std::vector<Future<void>> pushed_;
};

/// Parameters that live on one or several ranks, the servers, and are trained by workers, which pull the values and push gradients. The
/// parameters are one array of floats, of which each server has an equal part with its optimizer state. Each call of Schedule::factor()
/// gets the number of the update.
template <optim::Optimizer Rule, optim::Schedule Schedule = optim::Constant>
class ParameterServer {
  static_assert(!optim::has_groups<Rule>,
                "pdp: a parameter server takes no parameter groups; give it the optimizer without optim::Grouped");

 public:
  using Shard = ParameterShard<Rule, Schedule>;
  using Client = ParameterClient<Shard>;

  /// `servers`: names of ranks; a name may occur more than once. Throws ConfigError if there is none, if there are more than parameters, or
  /// if an option is out of range.
  ParameterServer(Node& node, const std::vector<std::string>& servers, const Rule& rule, std::span<const float> values,
                  const ParameterServerOptions& options, const Schedule& schedule = {})
      : workers_{options.workers} {
    if (servers.empty() || servers.size() > values.size())
      throw ConfigError{text("a ParameterServer of ", values.size(), " parameters was given ", servers.size(),
                             " servers; it needs at least one, and one parameter for each")};
    if (options.workers < 0 || options.max_staleness < 0)
      throw ConfigError{"ParameterServerOptions::workers and max_staleness must not be negative"};
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const std::size_t begin = ends_.empty() ? 0 : ends_.back();
      ends_.push_back(values.size() * (i + 1) / servers.size());
      const auto part = values.subspan(begin, ends_.back() - begin);
      shards_.push_back(node.remote<Shard>(servers[i], rule, schedule, std::vector<float>{part.begin(), part.end()}, options));
    }
  }

  /// Returns the access for worker 0, 1, ... of those that train from the start.
  [[nodiscard]] Client client(int worker) const {
    if (worker < 0 || worker >= workers_)
      throw ConfigError{text("worker ", worker, " was requested of a ParameterServer with ", workers_, " workers; see add_worker()")};
    return {worker, shards_, ends_};
  }
  /// Adds a worker that comes late, and returns its access. It takes part from the step of the slowest worker on, which may differ by one
  /// between servers while that worker pushes. A worker that ends before the others must leave().
  [[nodiscard]] Client add_worker() {
    for (const Remote<Shard>& shard : shards_) shard.template sync<&Shard::join>(workers_);
    return {workers_++, shards_, ends_};
  }
  /// Returns the parameters as they are now.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<Future<std::vector<float>>> parts;
    std::vector<float> all;
    for (const Remote<Shard>& shard : shards_) parts.push_back(shard.template async<&Shard::values>());
    for (auto& part : parts) {
      const std::vector<float> values = part.get();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  /// Returns the number of updates.
  [[nodiscard]] std::int64_t steps() const { return shards_.front().template sync<&Shard::steps>(); }

 private:
  int workers_;
  std::vector<Remote<Shard>> shards_;
  std::vector<std::size_t> ends_;
};

}  // namespace pdp::rpc
