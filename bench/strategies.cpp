// Measures the efficiency and the memory of a strategy: compares a step on several ranks with the same step on one, in the same run.
//
//   strategies --strategy data|zero1|zero2|zero3|tensor|gpipe|1f1b|interleaved|zero-bubble [--config mnist|wide|deep] [--batch N]
//              [--ranks N] [--micro-batches M] [--join-weights M] [--clip-norm X] [--pairs P]
//
// Prints one JSON object. Ranks are processes on one host that communicate through shared memory. Blocks of rank 0 alone alternate with
// blocks of all ranks together (A B B A ...), on the same batches, cut into the same micro-batches:
//   single_us, us       time of a step on rank 0 alone and on all ranks: medians over the blocks
//   efficiency          single_us / (ranks * us): the median over the pairs of blocks, with its 95 % interval (low, high).
//                       --join-weights applies to the pipeline only: one rank alone multiplies single micro-batches
//   of_schedule         only of a pipeline: efficiency / (m / (m + ranks - 1)), m = M: 1 is the limit of the schedules of GPipe and 1F1B
//   bytes               memory that the construction of the trainer takes (malloc and shared memory), on the rank that takes most
//   formula             size of parameters, gradients and optimizer state on the rank that has most; for zero3 also of two gathered layers

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/shm.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"
#include "common/interval.hpp"
#include "common/timing.hpp"

namespace {

using bench::now_us;
using pdp::Index;
using pdp::launch::parse_number;
using namespace pdp::strategy;

struct Settings {
  std::string config = "wide", strategy = "1f1b";
  Index batch = 512;
  int micro_batches = 8, join_weights = 1;
  double clip_norm = 0;
  int pairs = 11;

  [[nodiscard]] bool is_pipeline() const {
    return strategy == "gpipe" || strategy == "1f1b" || strategy == "interleaved" || strategy == "zero-bubble";
  }
  [[nodiscard]] int zero_stage() const { return strategy.starts_with("zero") && strategy.size() == 5 ? strategy.back() - '0' : 0; }
};

AnyStrategy strategy_of(const Settings& settings) {
  const int m = settings.micro_batches, join = settings.join_weights;
  if (settings.strategy == "data") return DataParallel{.accumulate = m};
  if (const int stage = settings.zero_stage(); stage >= 1 && stage <= 3) return Zero{.stage = stage, .accumulate = m};
  if (settings.strategy == "tensor") return TensorParallel{.accumulate = m};
  if (settings.strategy == "gpipe") return Pipeline<GPipe>{.micro_batches = m, .join_weights = join};
  if (settings.strategy == "1f1b") return Pipeline<OneForwardOneBackward>{.micro_batches = m, .join_weights = join};
  if (settings.strategy == "interleaved") return Pipeline<Interleaved>{.micro_batches = m, .join_weights = join};
  if (settings.strategy == "zero-bubble") return Pipeline<ZeroBubble>{.micro_batches = m, .join_weights = join};
  throw pdp::UsageError{pdp::text("--strategy ", settings.strategy,
                                  " is unknown; use data, zero1, zero2, zero3, tensor, gpipe, 1f1b, interleaved or zero-bubble")};
}

/// Returns the bytes that a rank has allocated by malloc and as shared memory. Every rank maps the shared memory of all ranks. All ranks
/// have allocated equal amounts of it.
double held(int ranks) {
  double mapped = 0;
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    if (unsigned long begin = 0, end = 0; line.find("/memfd:pdp") != line.npos && std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      mapped += static_cast<double>(end - begin);
  const auto all = mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd) + mapped / ranks;
}

/// Returns the bytes of parameters, gradients and optimizer state on the rank that holds most of them; for zero3 also those of the two
/// largest layers, which may be gathered at the same time.
template <class World, class TaskType>
double formula(const World& world, const TaskType& task, const Settings& settings, const pdp::TrainerOptions& options) {
  const pdp::nn::Outline model = pdp::nn::outline(task.model, pdp::input_of(task.model, options));
  const double state = 4 * static_cast<double>(pdp::optim::needed_state_fields(task.optimizer));
  const auto all = static_cast<double>(model.elements(0, model.size()));
  const int stage = settings.zero_stage();
  if (stage == 0) {  // the plans say how layers are divided
    double most = 0;
    for (const RankUse& use : pdp::describe(task, strategy_of(settings), world, options).ranks)
      most = std::max(most, static_cast<double>(use.parameters + use.gradients + use.optimizer_state));
    return most;
  }
  std::vector<double> layers;
  for (const auto& layer : model.layers) layers.push_back(static_cast<double>(layer.parameters));
  std::ranges::sort(layers, std::greater{});
  const double shared = (stage >= 1 ? state : 0) + (stage >= 2 ? 4 : 0) + (stage >= 3 ? 4 : 0);
  return all * (8 + state - shared + shared / world.size()) + (stage == 3 ? 4 * (layers[0] + layers[1]) : 0);
}

template <class World, class C>
void measure(World& world, const C& config, const Settings& settings) {
  bench::pin(world.rank(), world.size());
  const pdp::TrainerOptions options{.global_batch = settings.batch, .seed = 1, .clip_norm = settings.clip_norm};
  const double before = held(world.size());
  pdp::Trainer spread{world, strategy_of(settings), config.task, options};
  std::array<double, 1> bytes{held(world.size()) - before};
  world.all_reduce(bytes, pdp::comm::Max{});

  pdp::comm::Self alone;
  pdp::Trainer single{alone, Single{.accumulate = settings.micro_batches}, config.task, options};
  using Target = typename decltype(single)::Target;
  bench::Batches<Target> batches{settings.batch, config.widths.front(), config.widths.back(), 0};
  const pdp::data::Rows rows = pdp::data::shard_rows(settings.batch, spread.share());
  const auto width = static_cast<std::size_t>(config.widths.front());
  const auto own = [&](const auto& values, std::size_t each) {
    return std::span{values}.subspan(static_cast<std::size_t>(rows.first) * each, static_cast<std::size_t>(rows.size()) * each);
  };
  const auto on_one = [&] {
    batches.next();
    if (world.rank() == 0) single.step(batches.x(), batches.y(), settings.batch);
  };
  const auto on_all = [&] {
    batches.next();
    spread.step(own(batches.x(), width), own(batches.y(), 1), settings.batch);
  };
  const auto timed = [&](auto&& step, int count) {
    world.barrier();
    const double begin = now_us();
    for (int i = 0; i < count; ++i) step();
    world.barrier();
    return (now_us() - begin) / count;
  };
  for (int i = 0; i < 3; ++i) {
    on_one();
    on_all();
  }
  int count = std::max(2, static_cast<int>(100'000 / timed(on_one, 1)));  // blocks of about 100 ms
  world.broadcast(std::span{&count, 1}, 0);
  std::vector<double> ones, alls, efficiencies;
  for (int pair = 0; pair < settings.pairs; ++pair) {
    double one = 0;
    if (pair % 2 == 0) one = timed(on_one, count);
    const double all = timed(on_all, count);
    if (pair % 2 != 0) one = timed(on_one, count);
    ones.push_back(one);
    alls.push_back(all);
    efficiencies.push_back(one / (world.size() * all));
  }
  const auto [efficiency, low, high] = bench::interval(efficiencies);
  const double m = settings.micro_batches, allowed = m / (m + world.size() - 1);
  const auto of_schedule = settings.is_pipeline() ? fmt::format(", \"of_schedule\": {:.3f}", efficiency / allowed) : std::string{};
  pdp::print(world,
             "{{\"config\": \"{}\", \"strategy\": \"{}\", \"ranks\": {}, \"batch\": {}, \"micro_batches\": {}, \"join_weights\": {}, "
             "\"clip_norm\": {}, "
             "\"single_us\": {:.3f}, \"us\": {:.3f}, \"efficiency\": {:.3f}, \"low\": {:.3f}, \"high\": {:.3f}{}, \"bytes\": {:.0f}, "
             "\"formula\": {:.0f}}}",
             settings.config, settings.strategy, world.size(), settings.batch, settings.micro_batches, settings.join_weights,
             settings.clip_norm, bench::median(ones), bench::median(alls), efficiency, low, high, of_schedule, bytes[0],
             formula(world, config.task, settings, options));
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] {
      if (i + 1 == argc || *argv[i + 1] == '\0') throw pdp::UsageError{pdp::text(word, " must be followed by its value")};
      return std::string_view{argv[++i]};
    };
    if (word == "--config")
      settings.config = value();
    else if (word == "--strategy")
      settings.strategy = value();
    else if (word == "--batch")
      settings.batch = parse_number<Index>(word, value(), 1, 1 << 24);
    else if (word == "--micro-batches")
      settings.micro_batches = parse_number(word, value(), 1, 1 << 14);
    else if (word == "--join-weights")
      settings.join_weights = parse_number(word, value(), 1, 1 << 14);
    else if (word == "--clip-norm")
      settings.clip_norm = parse_number(word, value(), 0.0, 1e9);
    else if (word == "--pairs")
      settings.pairs = parse_number(word, value(), 1, 1'000'000);
    else if (word == "--ranks")
      value();  // read by launch::run
    else
      throw pdp::UsageError{pdp::text("unknown argument ", word, "; the first lines of bench/strategies.cpp list them")};
  }
  static_cast<void>(strategy_of(settings));
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Shm>(argc, argv, [&](auto& world) {
    const Settings settings = parse(argc, argv);
    if (settings.config == "mnist")
      measure(world, bench::mnist(), settings);
    else if (settings.config == "wide")
      measure(world, bench::wide(pdp::optim::Adam{}), settings);
    else if (settings.config == "deep")
      measure(world, bench::deep(), settings);
    else
      throw pdp::UsageError{pdp::text("--config ", settings.config, " is unknown; use mnist, wide or deep")};
  });
}
