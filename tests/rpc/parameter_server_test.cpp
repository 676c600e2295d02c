#include <pdp/rpc/parameter_server.hpp>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/promise.hpp>
#include <pdp/rpc/replica.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace optim = pdp::optim;
using pdp::rpc::Node;
using pdp::rpc::ParameterServer;
using pdp::rpc::ParameterServerOptions;
using pdp::rpc::Promise;
using rpc_job::message_of;

namespace {

constexpr pdp::Index inputs = 9, outputs = 3, rows = 4;  // rows of each worker

auto model() { return nn::Sequential{nn::Linear{inputs, 7}, nn::Tanh{}, nn::Linear{7, outputs}}; }
const optim::Cosine schedule{12, 0.1f};
constexpr optim::Adam adam{.lr = 0.03f};
using Server = ParameterServer<optim::Adam, optim::Cosine>;

/// The rows of a worker in a step, and their targets.
std::vector<float> x_of(int step, int worker) { return pdp::testing::normal(rows * inputs, 100 * step + worker); }
std::vector<float> y_of(int step, int worker) { return pdp::testing::normal(rows * outputs, 7000 + 100 * step + worker); }

/// A worker that trains a copy of the model with the parameters of a server.
class Trainee {
 public:
  explicit Trainee(Server::Client client) : client_{std::move(client)} {}

  /// Makes steps first to last - 1, with a gradient averaged over the rows of `workers` workers.
  void train(int first, int last, int workers) {
    for (int step = first; step < last; ++step) {
      client_.pull(replica_.values());
      const std::vector<float> x = x_of(step, client_.worker()), y = y_of(step, client_.worker());
      replica_.gradient_of({x.data(), rows, inputs}, y, rows * workers);
      client_.push(replica_.gradient());
    }
  }
  /// Waits for the last push.
  void finish() { client_.pull(replica_.values()); }
  void leave() { client_.leave(); }
  void push_twice() {
    client_.push(replica_.gradient());
    client_.push(replica_.gradient());
    client_.pull(replica_.values());
  }
  void push_wrong() { client_.push(std::vector<float>(3)); }

 private:
  Server::Client client_;
  pdp::rpc::Replica<decltype(model()), pdp::loss::MeanSquaredError> replica_{model(), {}, 0};
};

std::vector<float> initial_values() {
  pdp::rpc::Replica replica{model(), pdp::loss::MeanSquaredError{}, 5};
  return {replica.values().begin(), replica.values().end()};
}

/// Returns the parameters after data-parallel training with the same rows.
std::vector<float> data_parallel(int workers, int steps) {
  const pdp::Task task{model(), pdp::loss::MeanSquaredError{}, adam, schedule};
  std::vector<float> values;
  pdp::testing::ranks<comm::Thread>(workers, [&](comm::Thread& world) {
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = rows * workers, .seed = 5}};
    for (int step = 0; step < steps; ++step) trainer.step(x_of(step, world.rank()), y_of(step, world.rank()), rows * workers);
    pdp::rpc::Replica replica{model(), pdp::loss::MeanSquaredError{}, 0};
    const auto tensors = trainer.parameters();
    if (world.rank() != 0) return;
    for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  });
  return values;
}

/// Returns parameters in the order of data_parallel().
std::vector<float> in_file_order(const std::vector<float>& values) {
  pdp::nn::Stage<pdp::nn::LeafTypes<decltype(model())>, pdp::cpu::Cpu, float> stage{
      model(), pdp::Shape{inputs}, {{.first = 0, .last = 3}}, 0};
  std::ranges::copy(values, stage.values().begin());
  std::vector<float> all;
  for (const auto& tensor : pdp::checkpoint::export_parameters(stage)) all.insert(all.end(), tensor.values.begin(), tensor.values.end());
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("A synchronous ParameterServer equals DataParallel to the bit", "[rpc]", comm::Thread, comm::Shm, comm::Tcp) {
  const auto [workers, servers] = GENERATE(table<int, int>({{1, 1}, {2, 1}, {3, 2}}));
  constexpr int steps = 10;
  rpc_job::run<TestType>(1 + workers, [&](Node& node) {  // the servers are the master and the first worker
    std::vector<std::string> names{"master", "worker1"};
    names.resize(static_cast<std::size_t>(servers));
    const Server server{node, names, adam, initial_values(), {.workers = workers}, schedule};
    std::vector<pdp::rpc::Remote<Trainee>> all;
    for (int i = 0; i < workers; ++i) all.push_back(node.remote<Trainee>(node.name(i + 1), server.client(i)));
    std::vector<pdp::rpc::Future<void>> ends;
    for (const auto& each : all) ends.push_back(each.template async<&Trainee::train>(0, steps, workers));
    for (auto& end : ends) end.get();
    for (const auto& each : all) each.template sync<&Trainee::finish>();
    CHECK(server.steps() == steps);
    CHECK(in_file_order(server.values()) == data_parallel(workers, steps));
  });
}

TEST_CASE("A worker is at most max_staleness steps ahead of the slowest one", "[rpc]") {
  const int staleness = GENERATE(1, 3);
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    Server server{node, {"master"}, adam, initial_values(), {.workers = 2, .max_staleness = staleness}, schedule};
    const auto fast = node.remote<Trainee>("worker1", server.client(0)), slow = node.remote<Trainee>("worker2", server.client(1));
    auto end = fast.async<&Trainee::train>(0, 20, 1);
    // Until the slow worker has pushed, the fast one makes staleness + 1 steps.
    const auto wait_for = [&](std::int64_t steps) {
      const auto until = comm::Clock::now() + std::chrono::seconds{60};
      while (server.steps() < steps && comm::Clock::now() < until) {
      }
      for (int i = 0; i < 100; ++i) CHECK(server.steps() == steps);
    };
    wait_for(staleness + 1);
    slow.sync<&Trainee::train>(0, 2, 1);
    wait_for(staleness + 1 + 4);
    CHECK_FALSE(end.ready());
    slow.sync<&Trainee::leave>();
    end.get();
    fast.sync<&Trainee::finish>();
    CHECK(server.steps() == 22);
  });
}

TEST_CASE("A worker that joins late takes part in the next updates", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    Server server{node, {"master", "worker2"}, adam, initial_values(), {.workers = 1}, schedule};
    const auto first = node.remote<Trainee>("worker1", server.client(0));
    first.sync<&Trainee::train>(0, 5, 1);
    first.sync<&Trainee::finish>();
    const auto late = node.remote<Trainee>("worker2", server.add_worker());
    auto end = first.async<&Trainee::train>(5, 8, 2);
    late.sync<&Trainee::train>(5, 8, 2);
    end.get();
    first.sync<&Trainee::finish>();
    late.sync<&Trainee::finish>();
    CHECK(server.steps() == 8);
    late.sync<&Trainee::train>(8, 9, 2);  // its last gradient is a part of the update, although it leaves before the other has pushed
    late.sync<&Trainee::leave>();
    first.sync<&Trainee::train>(8, 9, 2);
    first.sync<&Trainee::finish>();
    CHECK(server.steps() == 9);
    CHECK_THAT(message_of<pdp::ConfigError>([&] { late.sync<&Trainee::finish>(); }), Contains("worker 1 does not take part"));
  });
}

TEST_CASE("Workers without a bound on staleness never wait", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    Server server{node, {"master"}, adam, initial_values(), {.workers = 2, .max_staleness = ParameterServerOptions::unbounded}, schedule};
    const auto one = node.remote<Trainee>("worker1", server.client(0));
    one.sync<&Trainee::train>(0, 30, 1);
    one.sync<&Trainee::finish>();
    CHECK(server.steps() == 30);
  });
}

TEST_CASE("A ParameterServer reports wrong use at the caller", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    Server server{node, {"master"}, adam, initial_values(), {.workers = 2}, schedule};
    CHECK_THAT(message_of<pdp::ConfigError>([&] { static_cast<void>(server.client(2)); }), Contains("worker 2 was requested"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] { Server{node, {}, adam, initial_values(), {}, schedule}; }), Contains("0 servers"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] { Server{node, {"master"}, adam, initial_values(), {.max_staleness = -1}, schedule}; }),
               Contains("must not be negative"));
    const auto worker = node.remote<Trainee>("worker1", server.client(0));
    CHECK_THAT(message_of<pdp::Error>([&] { worker.sync<&Trainee::push_twice>(); }),
               Contains("worker 0 has pushed the gradients of two steps"));
    CHECK_THAT(message_of<pdp::ShapeError>([&] { worker.sync<&Trainee::push_wrong>(); }), Contains("3 values were given"));
  });
}

namespace {

/// An object whose results are set by its other methods.
class Later {
 public:
  Promise<int> get() { return promises_.emplace_back(); }
  Promise<void> done() { return done_.emplace_back(); }
  Promise<int> get_shared() { return shared_; }
  void give_shared(int value) { shared_.set(value); }
  Promise<int> drop() { return {}; }  // NOLINT(readability-convert-member-functions-to-static): a remote method
  void give(int value) {
    for (auto& each : std::exchange(promises_, {})) each.set(value);
    for (auto& each : std::exchange(done_, {})) each.set();
  }
  void fail() {
    for (auto& each : std::exchange(promises_, {})) each.fail(std::make_exception_ptr(std::out_of_range{"too far"}));
  }
  void give_twice() {
    Promise<int> promise = promises_.front();
    promise.set(1);
    promise.set(2);
  }

 private:
  std::vector<Promise<int>> promises_;
  std::vector<Promise<void>> done_;
  Promise<int> shared_;
};
int doubled_on_worker(int x) { return 2 * x; }

}  // namespace

TEMPLATE_TEST_CASE("A function that returns a Promise gives its result later", "[rpc]", comm::Thread, comm::Shm) {
  rpc_job::run<TestType>(3, [&](Node& node) {
    const auto later = node.remote<Later>("worker1");
    auto one = later.async<&Later::get>();
    auto doubled = node.async<&doubled_on_worker>("worker2", one);
    auto done = later.async<&Later::done>();
    const auto reference = later.remote<&Later::get>();
    CHECK_FALSE(one.ready());
    later.sync<&Later::give>(7);
    CHECK(one.get() == 7);
    CHECK(doubled.get() == 14);
    done.get();
    CHECK(reference.to_here() == 7);

    auto failing = later.async<&Later::get>();
    later.sync<&Later::fail>();
    CHECK_THAT(message_of<std::out_of_range>([&] { failing.get(); }), Contains("Later::get on rank 1 (worker1): too far"));
    CHECK_THAT(message_of<pdp::Error>([&] { later.sync<&Later::drop>(); }), Contains("has dropped its Promise without a result"));
    auto once = later.async<&Later::get>();
    CHECK_THAT(message_of<pdp::Error>([&] { later.sync<&Later::give_twice>(); }), Contains("has been set twice"));
    CHECK(once.get() == 1);

    auto shared = later.async<&Later::get_shared>();
    CHECK_THAT(message_of<pdp::Error>([&] { later.sync<&Later::get_shared>(); }), Contains("was returned from two calls"));
    later.sync<&Later::give_shared>(9);
    CHECK(shared.get() == 9);
  });
}

TEST_CASE("Replica refuses frozen layers and says what to do", "[rpc][frozen]") {
  const auto make = [] {
    const pdp::rpc::Replica replica{pdp::nn::Sequential{pdp::nn::Frozen{pdp::nn::Linear{3, 2}}}, pdp::loss::MeanSquaredError{}, 5};
  };
  CHECK_THROWS_WITH(make(), "0.weight is inside an nn::Frozen, which cannot be in a remote network; train the model with a Trainer");
}
