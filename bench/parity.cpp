// Trains a model from given weights on given data, so that its losses can be compared with PyTorch's:
//
//   parity --model lenet|resnet|gpt --strategy single|data|zero|pipeline|tensor [--ranks N] [--comm shm|tcp|thread]
//          --steps K --batch B --lr R --init FILE.safetensors --data FILE.safetensors --losses FILE
//
// The models are those of common/configs.hpp, and in PyTorch those of peers/models.py, with the same names of parameters. The data has the
// tensors train.x and train.y: numbers (float32) and classes (int64), or tokens (int64). Step s uses rows s B to (s + 1) B - 1, and begins
// again with row 0 after the last whole batch. The optimizer is plain SGD. Writes step,loss with nine digits.

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/data/safetensors.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"

namespace {

using pdp::Index;
using pdp::launch::parse_number;

struct Settings {
  std::string model, strategy, comm = "shm", init, data, losses;
  int ranks = 1;
  std::int64_t steps = 100;
  Index batch = 32;
  float lr = 0.01f;
};

constexpr const char* usage =
    "usage: parity --model lenet|resnet|gpt --strategy single|data|zero|pipeline|tensor [--ranks N] [--comm shm|tcp|thread] "
    "--steps K --batch B --lr R --init FILE.safetensors --data FILE.safetensors --losses FILE";

/// Batch normalisation needs the whole batch as one micro-batch.
pdp::strategy::AnyStrategy strategy_of(const std::string& name, const std::string& model) {
  using namespace pdp::strategy;
  if (name == "single") return Single{};
  if (name == "data") return DataParallel{};
  if (name == "zero") return Zero{.stage = 3};
  if (name == "pipeline") return Pipeline<OneForwardOneBackward>{.micro_batches = model == "resnet" ? 1 : 4};
  if (name == "tensor") return TensorParallel{};
  throw pdp::UsageError{pdp::text("--strategy ", name, " is unknown; use single, data, zero, pipeline or tensor")};
}

/// Returns a tensor of whole numbers as 32-bit ones. Throws FileError if it has another number of elements, or a number that does not fit.
std::vector<std::int32_t> whole_numbers(const pdp::data::SafeTensors& file, const std::string& name, Index elements) {
  std::vector<std::int64_t> found(pdp::as_size(elements));
  file.read<std::int64_t>(name, std::span{found});
  std::vector<std::int32_t> numbers;
  for (const std::int64_t each : found) {
    if (!std::in_range<std::int32_t>(each))
      throw pdp::FileError{pdp::text(file.name(), ": ", name, " has ", each, ", which does not fit 32 bits")};
    numbers.push_back(static_cast<std::int32_t>(each));
  }
  return numbers;
}

/// Returns a tensor of samples, or of targets.
template <class T>
std::vector<T> values(const pdp::data::SafeTensors& file, const std::string& name, Index elements) {
  if constexpr (std::same_as<T, float>) {
    std::vector<float> found(pdp::as_size(elements));
    file.read<float>(name, std::span{found});
    return found;
  } else {
    return whole_numbers(file, name, elements);
  }
}

template <class Config>
void train(pdp::comm::Any& world, const Config& config, const Settings& settings) {
  const pdp::Task task{config.task.model, config.task.loss, pdp::optim::Sgd{.lr = settings.lr}};
  pdp::Trainer trainer{
      world, strategy_of(settings.strategy, settings.model), task, {.global_batch = settings.batch, .input = config.input}};
  trainer.set_parameters(pdp::checkpoint::load(settings.init), settings.init);

  const pdp::data::SafeTensors file{settings.data};
  const Index width = config.input.elements(), samples = file.at("train.x").elements() / width, batches = samples / settings.batch;
  if (batches == 0)
    throw pdp::FileError{pdp::text(file.name(), ": expected at least ", settings.batch, " samples of ", width, " values in train.x, found ",
                                   samples, "; give a smaller --batch")};
  using Sample = pdp::nn::SampleOf<decltype(task.model), float>;
  const auto x = values<Sample>(file, "train.x", samples * width);
  const auto y = values<std::int32_t>(file, "train.y", samples * config.positions);

  std::optional<pdp::LossLog> losses;
  if (world.rank() == 0) losses.emplace(settings.losses);
  const pdp::data::Rows share = pdp::data::shard_rows(settings.batch, trainer.share());
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const Index first = step % batches * settings.batch + share.first;
    const auto part = [&](const auto& all, Index of_sample) {
      return std::span{all}.subspan(pdp::as_size(first * of_sample), pdp::as_size(share.size() * of_sample));
    };
    const auto totals = trainer.step(part(x, width), part(y, config.positions), settings.batch);
    if (losses) losses->write(step, totals.mean_loss());
  }
  if (losses) losses->close();
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] {
      if (i + 1 == argc || *argv[i + 1] == '\0') throw pdp::UsageError{pdp::text(word, " must be followed by its value")};
      return std::string{argv[++i]};
    };
    bool is_text = false;
    for (const auto& [name, text] : {std::pair{"--model", &settings.model},
                                     {"--strategy", &settings.strategy},
                                     {"--comm", &settings.comm},
                                     {"--init", &settings.init},
                                     {"--data", &settings.data},
                                     {"--losses", &settings.losses}})
      if (word == name) *text = value(), is_text = true;
    if (is_text) continue;
    if (word == "--ranks")
      settings.ranks = parse_number(word, value(), 1, pdp::launch::most_local_ranks);
    else if (word == "--steps")
      settings.steps = parse_number(word, value(), std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
    else if (word == "--batch")
      settings.batch = parse_number(word, value(), Index{1}, Index{1} << 30);
    else if (word == "--lr")
      settings.lr = parse_number(word, value(), 0.0f, 1e6f);
    else
      throw pdp::UsageError{pdp::text("unknown argument ", word, "; ", usage)};
  }
  for (const auto& [name, text] : {std::pair{"--model", &settings.model},
                                   {"--strategy", &settings.strategy},
                                   {"--init", &settings.init},
                                   {"--data", &settings.data},
                                   {"--losses", &settings.losses}})
    if (text->empty()) throw pdp::UsageError{pdp::text(name, " is missing; ", usage)};
  if (settings.model != "lenet" && settings.model != "resnet" && settings.model != "gpt")
    throw pdp::UsageError{pdp::text("--model ", settings.model, " is unknown; use lenet, resnet or gpt")};
  if (settings.comm != "shm" && settings.comm != "tcp" && settings.comm != "thread")
    throw pdp::UsageError{pdp::text("--comm ", settings.comm, " is unknown; use shm, tcp or thread")};
  strategy_of(settings.strategy, settings.model);
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view{argv[1]} == "--help") return std::puts(usage) < 0 ? 1 : 0;
    const Settings settings = parse(argc, argv);
    pdp::launch::Options options;
    if (settings.comm == "thread") {
      options.threads = settings.ranks;
    } else {
      options.ranks = settings.ranks;
      options.comm = settings.comm;
    }
    return pdp::launch::run<pdp::comm::Shm, pdp::comm::Tcp>(options, [&](pdp::comm::Any& world) {
      if (settings.model == "lenet")
        train(world, bench::lenet(), settings);
      else if (settings.model == "resnet")
        train(world, bench::resnet(), settings);
      else
        train(world, bench::gpt(), settings);
    });
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "parity: %s\n", error.what());
    return 2;
  }
}
