// Measures how fast the ranks of a training save and load checkpoints.
//
//   checkpoint [--comm shm|tcp] [--ranks N] [--width W] [--rounds N] [--folder DIR]
//
// Each of N ranks (default 2) of Zero's stage 3 holds its part of a multilayer perceptron 1024-W-W-W-1000 and its Adam state. The default
// width of 3072 makes 150 MB for each of two ranks. The files are written below DIR (default: the current folder) and removed at the end.
// All measurements take turns, N rounds (default 7).
//
// Prints a JSON object for each measurement: what, comm, ranks, bytes (over all ranks), median_ms. The measurements:
//
//   dd             `dd conv=fsync` writes one file with as many bytes
//   save           Trainer::save
//   hash           each rank computes the hashes of its part, which save includes
//   copy           each rank copies its part in memory
//   stall          the part of an asynchronous save for which the training waits
//   in_background  the rest of that save, while the ranks wait
//   step           a step of the training
//   step_beside    a step while a checkpoint is written in the background
//   cat            `cat` reads all files, which are in the page cache
//   load           Trainer::load of the same files

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include "common/timing.hpp"

namespace {

namespace checkpoint = pdp::checkpoint;
namespace comm = pdp::comm;
namespace fs = std::filesystem;
namespace nn = pdp::nn;

struct Settings {
  int width = 3072, rounds = 7;
  fs::path folder = ".";
};

/// Runs a command of the shell. Throws std::runtime_error if it fails.
void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error{command + " failed"};
}

class Measurements {
 public:
  explicit Measurements(comm::Any& world) : world_{&world} {}

  /// Measures the time from when all ranks begin until all have ended.
  template <class F>
  void add(const char* what, const F& f) {
    world_->barrier();
    const double begin = bench::now_us();
    f();
    world_->barrier();
    times_[what].push_back((bench::now_us() - begin) / 1000);
  }
  void print(std::int64_t bytes) {
    if (world_->rank() != 0) return;
    const std::string_view name = world_->erased().name();
    for (const auto& [what, times] : times_)
      std::printf("{\"what\": \"%s\", \"comm\": \"%.*s\", \"ranks\": %d, \"bytes\": %lld, \"median_ms\": %.2f}\n", what.c_str(),
                  static_cast<int>(name.size()), name.data(), world_->size(), static_cast<long long>(bytes), bench::median(times));
  }

 private:
  comm::Any* world_;
  std::map<std::string, std::vector<double>> times_;
};

/// Quotes a path for the shell.
std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

void measure(comm::Any& world, const Settings& settings) {
  bench::pin(world.rank(), world.size());
  const pdp::Index width = settings.width, batch = 128;
  const nn::Sequential model{nn::Linear{1024, width},  nn::Relu{}, nn::Linear{width, width}, nn::Relu{},
                             nn::Linear{width, width}, nn::Relu{}, nn::Linear{width, 1000}};
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
  pdp::Trainer trainer{world, pdp::strategy::Zero{.stage = 3}, task, {.global_batch = batch * world.size()}};
  const auto x = pdp::testing::normal(static_cast<std::size_t>(batch) * 1024, 1);
  const std::vector<std::int32_t> classes(static_cast<std::size_t>(batch), 1);
  const auto step = [&] { trainer.step(x, classes); };
  step();

  const auto state = trainer.engine().state();
  checkpoint::Copies of_save, copy;
  const auto parts = checkpoint::own_parts(state, of_save, false);
  std::int64_t bytes = 0;
  for (const auto& part : parts) bytes += pdp::as_index(part.bytes.size());
  world.all_reduce(std::span{&bytes, 1}, comm::Sum{});

  const bool is_first = world.rank() == 0;
  const fs::path folder = settings.folder / "pdp-bench-checkpoint", file = settings.folder / "pdp-bench-dd";
  if (is_first) fs::remove_all(folder);
  std::optional<checkpoint::FolderLock> lock;
  if (is_first) lock.emplace(folder);
  const checkpoint::SaveOptions now{.lock = is_first ? &*lock : nullptr, .keep = 1};
  checkpoint::SaveOptions later = now;
  later.writing = checkpoint::Writing::in_background;
  using Save = checkpoint::Save<comm::Any, pdp::cpu::Cpu, float>;

  [[maybe_unused]] volatile std::uint64_t result = 0;  // keeps the compiler from removing the hashes
  Measurements measured{world};
  for (int round = 0; round <= settings.rounds; ++round) {  // the first one warms up
    measured.add("dd", [&] {
      if (is_first)
        shell("dd if=/dev/zero of=" + quoted(file) + " bs=1M iflag=count_bytes count=" + std::to_string(bytes) + " conv=fsync status=none");
    });
    if (is_first) fs::remove(file);
    measured.add("save", [&] { Save{world, state, now, of_save}.finish(); });
    measured.add("hash", [&] {
      for (const auto& part : parts) result = checkpoint::hash_of(part.bytes).low;
    });
    measured.add("copy", [&] { static_cast<void>(checkpoint::own_parts(state, copy, true)); });
    std::optional<Save> save;
    measured.add("stall", [&] { save.emplace(world, state, later, of_save); });
    measured.add("in_background", [&] { save->finish(); });
    for (int i = 0; i < 3; ++i) measured.add("step", step);
    save.emplace(world, state, later, of_save);
    for (int i = 0; i < 3; ++i) measured.add("step_beside", step);
    save->finish();
    measured.add("cat", [&] {
      if (is_first) shell("cat " + quoted(folder) + "/step-*/* > /dev/null");
    });
    measured.add("load", [&] { static_cast<void>(checkpoint::load_state(world, state, folder)); });
    if (round == 0) measured = Measurements{world};
  }
  measured.print(bytes);
  lock.reset();
  if (is_first) fs::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) try {
  Settings settings;
  pdp::launch::Options options;
  options.read(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--width" && has_value) {
      settings.width = pdp::launch::parse_number("--width", argv[++i], 1, 100'000);
    } else if (argument == "--rounds" && has_value) {
      settings.rounds = pdp::launch::parse_number("--rounds", argv[++i], 1, 1000);
    } else if (argument == "--folder" && has_value) {
      settings.folder = argv[++i];
    } else if (argument == "--comm" || argument == "--ranks" || argument == "--threads") {
      ++i;  // options.read() has read it
    } else {
      std::fprintf(stderr, "checkpoint: unknown argument '%s'; the first lines of bench/checkpoint.cpp list them\n", argv[i]);
      return 2;
    }
  }
  if (!options.ranks && !options.threads) options.ranks = 2;
  return pdp::launch::run<comm::Shm, comm::Tcp>(options, [&](comm::Any& world) { measure(world, settings); });
} catch (const pdp::UsageError& error) {
  std::fprintf(stderr, "checkpoint: %s\n", error.what());
  return 2;
}
