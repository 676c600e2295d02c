// Trains a classifier of handwritten digits with a parameter server: workers pull parameters from servers and push gradients to them.
// The master only waits, and tests the parameters after each epoch.
//
//   parameter_server --workers 2 --staleness 4            4 ranks: the master, a server and two workers
//   parameter_server --workers 3 --servers 2              synchronous, as data-parallel training
//   srun -n 4 parameter_server --workers 2                under a launcher, as many ranks as the flags say

#include <chrono>

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

struct ServerFlags {
  pdp::launch::Options launch;
  int workers = 2, servers = 1, staleness = 0, epochs = 3;
  Index batch_size = 128;
  std::uint64_t seed = 0;
  std::string data = PDP_EXAMPLE_DATA "/mnist";
};

ServerFlags parse(int argc, char** argv) {
  ServerFlags flags;
  examples::CommandLine line{argc, argv, "Trains a classifier of handwritten digits with a parameter server."};
  line.number("--workers", flags.workers, 1, 1024, "ranks that compute gradients");
  line.number("--servers", flags.servers, 1, 1024, "ranks over which the parameters are divided");
  line.number("--staleness", flags.staleness, 0, 1'000'000, "steps that a worker may be ahead of the slowest one; 0: synchronous");
  line.number("--epochs", flags.epochs, 0, 1'000'000, "passes over the training set");
  line.number("--batch-size", flags.batch_size, Index{1}, Index{1} << 20, "samples per step and worker");
  line.number("--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
              "seed of the initial parameters and of the sample order");
  line.words("--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  line.ranks(flags.launch, " (default: the master, the servers and the workers)");
  line.read([&] {
    if (!flags.launch.ranks_are_given()) flags.launch.ranks = 1 + flags.servers + flags.workers;
  });
  return flags;
}

auto model() { return nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 10}}; }
using Replica = rpc::Replica<decltype(model()), pdp::loss::CrossEntropy>;
using Server = rpc::ParameterServer<pdp::optim::Adam>;

/// The sums of an epoch over the rows of a worker.
struct EpochSums {
  pdp::LossSums sums;
  double rows = 0;
};

/// A worker: it trains a copy of the model on its share of each global batch.
class Worker {
 public:
  Worker(Server::Client client, const std::string& data, int workers, Index batch, bool synchronous, std::uint64_t seed)
      : client_{std::move(client)},
        digits_{pdp::data::Mnist{data}.train()},
        sampler_{digits_.size(), std::min(batch * workers, digits_.size()), seed},
        shard_{client_.worker(), workers},
        synchronous_{synchronous} {}

  EpochSums train(int epoch) {
    EpochSums total;
    sampler_.start(epoch);
    for (Index step = 0; step < sampler_.steps(); ++step) {
      const std::span<const Index> samples = sampler_.share(step, shard_);
      x_.resize(samples.size() * 784);
      y_.resize(samples.size());
      digits_.gather(samples, x_, y_);
      client_.pull(replica_.values());
      // A synchronous update adds the gradients of all workers, so each is averaged over the rows of all.
      const Index rows = synchronous_ ? pdp::as_index(sampler_.batch(step).size()) : pdp::as_index(samples.size());
      const pdp::LossSums sums = replica_.gradient_of({x_.data(), pdp::as_index(samples.size()), 784}, y_, std::max<Index>(rows, 1));
      client_.push(replica_.gradient());
      total.sums.loss += sums.loss;
      total.sums.correct += sums.correct;
      total.rows += static_cast<double>(samples.size());
    }
    return total;
  }
  void finish() { client_.pull(replica_.values()); }  // waits for the last push

 private:
  Server::Client client_;
  pdp::data::Digits digits_;
  pdp::data::Sampler sampler_;
  pdp::data::Shard shard_;
  bool synchronous_;
  Replica replica_{model(), pdp::loss::CrossEntropy{}, 0};
  std::vector<float> x_;
  std::vector<std::int32_t> y_;
};

void train(rpc::Node& node, const ServerFlags& flags) {
  Replica replica{model(), pdp::loss::CrossEntropy{}, flags.seed};
  std::vector<std::string> servers;
  for (int i = 0; i < flags.servers; ++i) servers.push_back(node.name(1 + i));
  const Server server{
      node, servers, pdp::optim::Adam{.lr = 1e-3f}, replica.values(), {.workers = flags.workers, .max_staleness = flags.staleness}};
  std::vector<rpc::Remote<Worker>> workers;
  for (int i = 0; i < flags.workers; ++i)
    workers.push_back(node.remote<Worker>(node.name(1 + flags.servers + i), server.client(i), flags.data, flags.workers, flags.batch_size,
                                          flags.staleness == 0, flags.seed));

  const pdp::data::Digits test = pdp::data::Mnist{flags.data}.test();
  std::vector<Index> all(pdp::as_size(test.size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = pdp::as_index(i);
  std::vector<float> x(all.size() * 784);
  std::vector<std::int32_t> y(all.size());
  test.gather(all, x, y);

  for (int epoch = 0; epoch < flags.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<rpc::Future<EpochSums>> ends;
    for (const auto& worker : workers) ends.push_back(worker.async<&Worker::train>(epoch));
    EpochSums total;
    for (auto& end : ends) {
      const EpochSums sums = end.get();
      total.sums.loss += sums.sums.loss;
      total.sums.correct += sums.sums.correct;
      total.rows += sums.rows;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const auto& worker : workers) worker.sync<&Worker::finish>();
    std::ranges::copy(server.values(), replica.values().begin());
    const double correct = replica.evaluate({x.data(), test.size(), 784}, y).correct;
    pdp::print(pdp::comm::Self{}, "Epoch {} || loss {:.4f} || accuracy {:.4f} || test accuracy {:.4f} || {:.0f} samples/s", epoch,
               total.sums.loss / total.rows, total.sums.correct / total.rows, correct / static_cast<double>(test.size()),
               total.rows / seconds);
  }
}

int main(int argc, char** argv) {
  const ServerFlags flags = parse(argc, argv);
  std::vector<std::string> names{"master"};
  for (int i = 1; i <= flags.servers; ++i) names.push_back(pdp::text("server", i));
  for (int i = 1; i <= flags.workers; ++i) names.push_back(pdp::text("worker", i));

  return examples::run(flags.launch,
                       [&](pdp::comm::Any& world) { rpc::serve(world, names, [&](rpc::Node& node) { train(node, flags); }); });
}
