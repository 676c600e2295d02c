// Measures one training step against its floor: the model's products, convolutions and pooling alone, in the same run.
//
//   step --config toy|mnist|ae|wide|lenet|resnet|gpt [--strategy single|data] [--comm shm|tcp|thread] [--ranks N] [--threads k] [--pairs P]
//       [--precision float|bfloat16]
//
// N ranks, each with k threads. Prints one JSON object. Step and floor are timed in alternating blocks (A B B A ...); the figures are
// medians over blocks. bfloat16 is for wide and gpt; the floor is in float.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"
#include "common/floor.hpp"
#include "common/timing.hpp"

namespace {

using bench::median;
using bench::now_us;
using pdp::Index;
using pdp::launch::parse_number;

struct Settings {
  std::string config = "mnist", strategy, comm = "shm", precision = "float";
  int ranks = 1, threads = 1, pairs = 15;
};

/// Calls f(config, precision).
template <class F>
void with_config(const Settings& settings, F&& f) {
  const std::string& name = settings.config;
  const pdp::Float32 in_float;
  const auto in_either = [&](const auto& config) {
    if (settings.precision == "bfloat16")
      f(config, pdp::MixedBfloat16{});
    else
      f(config, in_float);
  };
  if (name == "toy")
    f(bench::toy(), in_float);
  else if (name == "mnist")
    f(bench::mnist(), in_float);
  else if (name == "ae")
    f(bench::ae(), in_float);
  else if (name == "wide")
    in_either(bench::wide());
  else if (name == "lenet")
    f(bench::lenet(), in_float);
  else if (name == "resnet")
    f(bench::resnet(), in_float);
  else if (name == "gpt")
    in_either(bench::gpt());
  else
    throw pdp::UsageError{pdp::text("--config ", name, " is unknown; use toy, mnist, ae, wide, lenet, resnet or gpt")};
}

template <class Comm, class Strategy, class C, class Precision>
void measure(Comm& world, const Strategy& strategy, const C& config, Precision precision, const Settings& settings) {
  if (settings.threads == 1) bench::pin(world.rank(), world.size());
  pdp::Trainer trainer{world,
                       strategy,
                       config.task,
                       {.global_batch = config.rows * world.size(), .seed = 1, .input = config.input, .threads = settings.threads},
                       precision};
  using Target = typename decltype(trainer)::Target;
  using Sample = pdp::nn::SampleOf<decltype(config.task.model), float>;
  bench::Batches<Target, Sample> batches{config.rows, config.widths.front(), config.widths.back(), world.rank(), config.positions};
  bench::Floor floor{config.task.model, config.input, config.rows, settings.threads};
  const auto step = [&] {
    batches.next();
    trainer.step(batches.x(), batches.y(), config.rows * world.size());
  };
  const auto timed = [&](auto&& work, int count) {
    world.barrier();
    const double begin = now_us();
    for (int i = 0; i < count; ++i) work();
    return (now_us() - begin) / count;
  };
  for (int i = 0; i < 3; ++i) {
    step();
    floor.run();
  }
  int count = std::max(1, static_cast<int>(20'000 / timed([&] { floor.run(); }, 1)));  // blocks of about 20 ms
  world.broadcast(std::span{&count, 1}, 0);
  std::vector<double> steps, floors;
  for (int pair = 0; pair < settings.pairs; ++pair)
    for (const bool first : {pair % 2 == 0, pair % 2 != 0})
      if (first)
        steps.push_back(timed(step, count));
      else
        floors.push_back(timed([&] { floor.run(); }, count));
  const double median_us = median(steps);
  pdp::print(world,
             "{{\"config\": \"{}\", \"strategy\": \"{}\", \"comm\": \"{}\", \"ranks\": {}, \"threads\": {}, \"precision\": \"{}\", "
             "\"median_us\": {:.3f}, "
             "\"floor_us\": {:.3f}, "
             "\"samples_per_s\": {:.0f}}}",
             settings.config, settings.strategy, settings.comm, world.size(), settings.threads, settings.precision, median_us,
             median(floors), static_cast<double>(config.rows * world.size()) * 1e6 / median_us);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] {
      if (i + 1 == argc || *argv[i + 1] == '\0') throw pdp::UsageError{pdp::text(word, " must be followed by its value")};
      return std::string{argv[++i]};
    };
    if (word == "--config")
      settings.config = value();
    else if (word == "--strategy")
      settings.strategy = value();
    else if (word == "--comm")
      settings.comm = value();
    else if (word == "--precision")
      settings.precision = value();
    else if (word == "--ranks")
      settings.ranks = parse_number(word, value(), 1, pdp::launch::most_local_ranks);
    else if (word == "--threads")
      settings.threads = parse_number(word, value(), 1, 4096);
    else if (word == "--pairs")
      settings.pairs = parse_number(word, value(), 1, 1'000'000);
    else
      throw pdp::UsageError{
          pdp::text("unknown argument ", word,
                    "; usage: step --config toy|mnist|ae|wide|lenet|resnet|gpt [--strategy single|data] [--comm shm|tcp|thread] "
                    "[--ranks N] [--threads k] [--pairs P] [--precision float|bfloat16]")};
  }
  if (settings.precision != "float" && settings.precision != "bfloat16")
    throw pdp::UsageError{pdp::text("--precision ", settings.precision, " is unknown; use float or bfloat16")};
  if (settings.precision == "bfloat16" && settings.config != "wide" && settings.config != "gpt")
    throw pdp::UsageError{pdp::text("--precision bfloat16 is for --config wide and gpt, not for ", settings.config)};
  if (settings.strategy.empty()) settings.strategy = settings.ranks == 1 ? "single" : "data";
  return settings;
}

template <class Comm>
int run(const pdp::launch::Options& options, const Settings& settings) {
  return pdp::launch::run<Comm>(options, [&](auto& world) {
    with_config(settings, [&](const auto& config, auto precision) {
      if (settings.strategy == "single")
        measure(world, pdp::strategy::Single{}, config, precision, settings);
      else if (settings.strategy == "data")
        measure(world, pdp::strategy::DataParallel{}, config, precision, settings);
      else
        throw pdp::UsageError{pdp::text("--strategy ", settings.strategy, " is unknown; use single or data")};
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    if (settings.comm == "shm") return run<pdp::comm::Shm>({.ranks = settings.ranks}, settings);
    if (settings.comm == "tcp") return run<pdp::comm::Tcp>({.ranks = settings.ranks}, settings);
    if (settings.comm == "thread") return run<pdp::comm::Shm>({.threads = settings.ranks}, settings);
    throw pdp::UsageError{pdp::text("--comm ", settings.comm, " is unknown; use shm, tcp or thread")};
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "step: %s\n", error.what());
    return 2;
  }
}
