// Measures remote calls between a master and two workers that do nothing else.
//
//   rpc [--comm shm|tcp] [--calls N] [--polling]       starts its own three ranks
//   rpc --threads 3 ...                                over comm::Thread
//
// --polling: the master and worker1 do not sleep while they wait. Needs a core for each of them.
//
// Prints a JSON object for each measurement: what, comm, polling, median_us. The measurements:
//
//   call            an empty call and its answer
//   chain           four dependent calls on the two workers in turn, and the answer of the last
//   argument        a call with 4 MiB of floats as argument, and its answer
//   message         the same bytes and an answer of one float as messages of the communicator
//   in_flight       one of 10,000 calls that are in flight at the same time
//   autoencoder_serial      a training step of the auto-encoder 784-128-28-128-784 with 64 samples, by a Trainer on the master alone
//   autoencoder_step        the same step with the encoder on worker1 and the decoder on worker2, and the loss known at its end
//   autoencoder_pipelined   the same step in four micro-batches, with the loss known two steps later

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/distributed_optimizer.hpp>
#include <pdp/rpc/run.hpp>
#include <pdp/rpc/sub_network.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include "common/timing.hpp"

namespace {

namespace comm = pdp::comm;
namespace rpc = pdp::rpc;

constexpr std::size_t elements = 1 << 20;

int same(int x) { return x; }
std::size_t size_of(std::span<const float> x) { return x.size(); }

/// Returns the median time of one call in microseconds. Each measured time is of `batch` calls.
template <class F>
double median_us(int calls, int batch, const F& call) {
  std::vector<double> times;
  for (int i = -calls / 10; i < calls; ++i) {
    const double begin = bench::now_us();
    call();
    if (i >= 0) times.push_back((bench::now_us() - begin) / batch);
  }
  return bench::median(times);
}

struct Settings {
  int calls = 2000;
  bool polling = false;
};

rpc::NodeOptions node_options(const comm::Any& world, const Settings& settings) {
  const bool polls = settings.polling && world.rank() < 2;
  return {.polling = polls ? comm::Duration{std::chrono::seconds{1}} : comm::Duration{}};
}

void report(const char* what, const comm::Any& world, const Settings& settings, double us) {
  const std::string_view name = world.erased().name();
  std::printf("{\"what\": \"%s\", \"comm\": \"%.*s\", \"polling\": %s, \"median_us\": %.2f}\n", what, static_cast<int>(name.size()),
              name.data(), settings.polling ? "true" : "false", us);
  std::fflush(stdout);
}

void measure_calls(comm::Any& world, const Settings& settings) {
  const rpc::NodeOptions options = node_options(world, settings);
  rpc::serve(
      world, {"master", "worker1", "worker2"},
      [&](rpc::Node& node) {
        const auto median = [&](const char* what, int calls, int batch, const auto& call) {
          report(what, world, settings, median_us(calls, batch, call));
        };
        median("call", settings.calls, 1, [&] { node.sync<&same>("worker1", 1); });
        median("chain", settings.calls, 1, [&] {
          auto first = node.async<&same>("worker1", 1);
          auto second = node.async<&same>("worker2", first);
          auto third = node.async<&same>("worker1", second);
          node.sync<&same>("worker2", third);
        });
        const std::vector<float> x(elements, 1.0f);
        median("argument", std::max(20, settings.calls / 20), 1, [&] { node.sync<&size_of>("worker1", x); });
        std::vector<rpc::Future<int>> futures;
        median("in_flight", 5, 10'000, [&] {
          for (int i = 0; i < 10'000; ++i) futures.push_back(node.async<&same>("worker1", i));
          for (auto& future : futures) future.get();
          futures.clear();
        });
      },
      options);
}

void measure_messages(comm::Any& world, const Settings& settings) {
  std::vector<float> x(elements, 1.0f);
  float answer = 0;
  const int calls = std::max(20, settings.calls / 20);
  if (world.rank() == 0)
    report("message", world, settings, median_us(calls, 1, [&] {
             world.send(x, 1);
             world.recv(std::span{&answer, 1}, 1);
           }));
  if (world.rank() != 1) return;
  for (int i = -calls / 10; i < calls; ++i) {
    world.recv(x, 0);
    world.send(std::span{&answer, 1}, 0);
  }
}

namespace nn = pdp::nn;

auto encoder() { return nn::Sequential{nn::Linear{784, 128}, nn::Linear{128, 28}}; }
auto decoder() { return nn::Sequential{nn::Linear{28, 128}, nn::Linear{128, 784}}; }
constexpr pdp::optim::Adam rule{.lr = 0.01f};
constexpr pdp::Index batch = 64, width = 784;

void measure_autoencoder(comm::Any& world, const Settings& settings) {
  using rpc::autograd::Context;
  using rpc::autograd::Loss;
  const std::vector<float> x = pdp::testing::normal(batch * width, 1);
  const int steps = std::max(20, settings.calls / 4);
  const rpc::NodeOptions options = node_options(world, settings);
  if (world.rank() == 0) {
    comm::Self self;
    const pdp::Task task{nn::Sequential{encoder(), decoder()}, pdp::loss::MeanSquaredError{}, rule};
    pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = batch, .seed = 1}};
    report("autoencoder_serial", world, settings, median_us(steps, 1, [&] { trainer.step(x, x); }));
  }
  rpc::serve(
      world, {"master", "worker1", "worker2"},
      [&](rpc::Node& node) {
        const auto front = node.remote<rpc::SubNetworkOf<encoder>>("worker1", rpc::NetworkOptions{.seed = 1, .position = 0});
        const auto back = node.remote<rpc::SubNetworkOf<decoder>>("worker2", rpc::NetworkOptions{.seed = 1, .position = 1});
        rpc::DistributedOptimizer adam{node, rule, front, back};
        const auto pixels = [&](pdp::Index first, pdp::Index last) {
          return std::vector<float>{x.begin() + first * width, x.begin() + last * width};
        };
        report("autoencoder_step", world, settings, median_us(steps, 1, [&] {
                 Context context{node};
                 const auto image = context.forward(back, context.forward(front, {batch, width, x}));
                 Loss loss = context.loss(pdp::loss::MeanSquaredError{}, image, x);
                 context.backward(loss);
                 adam.step(context);
                 loss.get();
               }));
        std::deque<Loss> losses;
        constexpr int at_once = 10;
        constexpr pdp::Index parts = 4, part_rows = batch / parts;
        report("autoencoder_pipelined", world, settings, median_us(std::max(10, steps / at_once), at_once, [&] {
                 for (int step = 0; step < at_once; ++step) {
                   Context context{node};
                   const auto encode = [&](pdp::Index part) {
                     return context.forward(front, {part_rows, width, pixels(part * part_rows, (part + 1) * part_rows)});
                   };
                   auto next = encode(0);
                   for (pdp::Index part = 0; part < parts; ++part) {
                     const auto code = std::move(next);
                     if (part + 1 < parts) next = encode(part + 1);
                     losses.push_back(context.loss(pdp::loss::MeanSquaredError{}, context.forward(back, code),
                                                   pixels(part * part_rows, (part + 1) * part_rows), batch));
                     context.backward(losses.back());
                   }
                   adam.step(context);
                   for (; losses.size() > 8; losses.pop_front()) losses.front().get();
                 }
               }));
        for (Loss& loss : losses) loss.get();
      },
      options);
}

}  // namespace

int main(int argc, char** argv) try {
  Settings settings;
  pdp::launch::Options options;
  options.read(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--polling") {
      settings.polling = true;
    } else if (argument == "--calls" && i + 1 < argc) {
      settings.calls = pdp::launch::parse_number("--calls", argv[++i], 1, 1'000'000);
    } else if (argument == "--comm" || argument == "--threads") {
      ++i;  // options.read() has read it
    } else {
      std::fprintf(stderr, "rpc: unknown argument '%s'; the first lines of bench/rpc.cpp list them\n", argv[i]);
      return 2;
    }
  }
  if (!options.ranks && !options.threads) options.ranks = 3;
  return pdp::launch::run<comm::Shm, comm::Tcp>(options, [&](comm::Any& world) {
    measure_calls(world, settings);
    measure_messages(world, settings);
    measure_autoencoder(world, settings);
  });
} catch (const pdp::UsageError& error) {
  std::fprintf(stderr, "rpc: %s\n", error.what());
  return 2;
}
