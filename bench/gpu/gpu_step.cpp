// One training step on a GPU against its floor: the model's matrix products alone, as one graph, in the same run.
//
//   gpu_step --config toy|mnist|ae|wide [--tf32] [--no-graphs] [--steps N] [--pairs P]
//
// Prints one JSON object. Blocks of N steps on a batch that lies on the GPU, and of as many floors, alternate (A B B A ...) and are timed
// by events of the GPU; the figures are medians over blocks, for one step.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/cuda/library.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"
#include "common/number.hpp"
#include "common/timing.hpp"

namespace {

using pdp::Index;
using pdp::Matrix;
using pdp::cuda::Memory;

struct Settings {
  std::string config = "mnist";
  bool tf32 = false, graphs = true;
  int steps = 1000, pairs = 11;
};

/// How long the device takes for what f gives it, in microseconds for each of so many times.
class Timer {
 public:
  explicit Timer(const pdp::cuda::Device& device) : device_{device} {
    for (cudaEvent_t& event : events_) pdp::cuda::check("cudaEventCreate", cudaEventCreate(&event));
  }
  Timer(const Timer&) = delete;
  ~Timer() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  template <class F>
  double operator()(int times, F&& f) {
    pdp::cuda::check("cudaEventRecord", cudaEventRecord(events_[0], device_.stream()));
    for (int i = 0; i < times; ++i) f();
    pdp::cuda::check("cudaEventRecord", cudaEventRecord(events_[1], device_.stream()));
    pdp::cuda::check("cudaEventSynchronize", cudaEventSynchronize(events_[1]));
    float milliseconds = 0;
    pdp::cuda::check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return static_cast<double>(milliseconds) * 1000 / times;
  }

 private:
  const pdp::cuda::Device& device_;
  std::array<cudaEvent_t, 2> events_{};
};

/// The products of a step on memory of their own: forward, the gradient of each weight, and the gradient of each input but the first.
class Floor {
 public:
  Floor(const pdp::cuda::Device& device, const std::vector<Index>& widths, Index rows) : device_{device}, widths_{widths}, rows_{rows} {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      values_.push_back(filled(rows * widths[i], i));
      gradients_.push_back(filled(rows * widths[i], 100 + i));
      if (i == 0) continue;
      weights_.push_back(filled(widths[i - 1] * widths[i], 200 + i));
      weight_gradients_.push_back(filled(widths[i - 1] * widths[i], 300 + i));
    }
  }

  void run() {
    replay(device_, recordings_, std::array<Index, 1>{0}, [this] {
      using In = Matrix<const float>;
      const auto value = [&](std::size_t i) { return Matrix<float>{values_[i].data(), rows_, widths_[i]}; };
      const auto gradient = [&](std::size_t i) { return Matrix<float>{gradients_[i].data(), rows_, widths_[i]}; };
      const auto weight = [&](std::vector<Memory<float>>& of, std::size_t i) {
        return Matrix<float>{of[i].data(), widths_[i], widths_[i + 1]};
      };
      for (std::size_t i = 0; i < weights_.size(); ++i) gemm(device_, In{value(i)}, In{weight(weights_, i)}, value(i + 1), false);
      for (std::size_t i = weights_.size(); i-- > 0;) {
        if (i > 0) gemm_nt(device_, In{gradient(i + 1)}, In{weight(weights_, i)}, gradient(i), false);
        gemm_tn(device_, In{value(i)}, In{gradient(i + 1)}, weight(weight_gradients_, i), false);
      }
    });
  }

 private:
  Memory<float> filled(Index elements, std::size_t key) {
    auto memory = allocate<float>(device_, elements);
    fill_uniform(device_, pdp::random::make_key(1, key), 1, pdp::random::Elements{}, memory.span());
    return memory;
  }

  const pdp::cuda::Device& device_;
  std::vector<Index> widths_;
  Index rows_;
  std::vector<Memory<float>> values_, gradients_, weights_, weight_gradients_;
  pdp::cuda::Device::Recordings recordings_;
};

template <class Config>
void measure(const Config& config, const Settings& settings) {
  const pdp::cuda::Device device{{.tf32 = settings.tf32, .graphs = settings.graphs}};
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::parallel::Single{}, config.task, {.global_batch = config.rows}, device};
  using Target = typename decltype(trainer)::Target;
  const bench::Batches<Target> batches{config.rows, config.widths.front(), config.widths.back(), 0};
  auto x = allocate<float>(device, static_cast<Index>(batches.x().size()));
  auto y = allocate<Target>(device, static_cast<Index>(batches.y().size()));
  upload(device, std::span{batches.x()}, x.data());
  upload(device, std::span{batches.y()}, y.data());
  const auto step = [&] {
    trainer.engine().start({{x.data(), config.rows, config.widths.front()}, std::as_const(y).span(), config.rows, /*on_device*/ true});
  };
  Floor floor{device, config.widths, config.rows};
  Timer timed{device};
  const auto run_floor = [&] { floor.run(); };
  timed(20, step);
  const double first = trainer.finish().mean_loss();
  timed(20, run_floor);
  std::vector<double> steps, floors;
  for (int pair = 0; pair < settings.pairs; ++pair)
    for (const bool is_step : {pair % 2 == 0, pair % 2 != 0})
      if (is_step)
        steps.push_back(timed(settings.steps, step));
      else
        floors.push_back(timed(settings.steps, run_floor));
  const double last = trainer.finish().mean_loss();
  std::printf(
      "{\"config\": \"%s\", \"device\": \"%s\", \"tf32\": %s, \"graphs\": %s, \"median_us\": %.3f, \"floor_us\": %.3f, "
      "\"first_loss\": %.6g, \"last_loss\": %.6g}\n",
      settings.config.c_str(), device.describe().c_str(), settings.tf32 ? "true" : "false", settings.graphs ? "true" : "false",
      bench::median(steps), bench::median(floors), first, last);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw pdp::UsageError{pdp::text(word, " must be followed by its value")};
      return std::string{argv[++i]};
    };
    if (word == "--config")
      settings.config = value();
    else if (word == "--tf32")
      settings.tf32 = true;
    else if (word == "--no-graphs")
      settings.graphs = false;
    else if (word == "--steps")
      settings.steps = bench::number<int>(word, value(), 1);
    else if (word == "--pairs")
      settings.pairs = bench::number<int>(word, value(), 1);
    else
      throw pdp::UsageError{pdp::text("unknown argument ", word,
                                      "; usage: gpu_step --config toy|mnist|ae|wide [--tf32] [--no-graphs] [--steps N] [--pairs P]")};
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    if (settings.config == "toy")
      measure(bench::toy(), settings);
    else if (settings.config == "mnist")
      measure(bench::mnist(), settings);
    else if (settings.config == "ae")
      measure(bench::ae(), settings);
    else if (settings.config == "wide")
      measure(bench::wide(), settings);
    else
      throw pdp::UsageError{pdp::text("--config ", settings.config, " is unknown; it is toy, mnist, ae or wide")};
    return 0;
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return 2;
  } catch (const pdp::Error& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return 1;
  }
}
