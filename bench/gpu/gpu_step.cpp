// Measures one training step on a GPU against its floor: the model's matrix products alone, as one graph, in the same run.
//
//   gpu_step --config toy|mnist|ae|wide [--precision float32|tf32|bfloat16] [--no-graphs] [--fused-relu] [--serial-weight-gradients]
//            [--steps N] [--pairs P | --turns]
//
// Prints one JSON object. Blocks of N steps, on a batch in GPU memory, alternate with blocks of N floors (A B B A ...). They are timed by
// events of the GPU; the figures are medians over blocks, for one step. With --turns, it runs two blocks of each for every line on standard
// input, and prints an object each time, so that several programs can take turns.

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/cuda/detail/library.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"
#include "common/timing.hpp"

namespace {

using pdp::Index;
using pdp::Matrix;
using pdp::cuda::Memory;
using pdp::launch::parse_number;

struct Settings {
  std::string config = "mnist";
  std::string precision = "float32";
  bool graphs = true, fused_relu = false, overlapped_weight_gradients = true, turns = false;
  int steps = 1000, pairs = 11;
};

/// Measures how long the device takes for the work that f submits: microseconds per call, over `times` calls.
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

/// Repeats f for `duration`, so that an idle GPU raises its clocks, which takes a fraction of a second.
void warm_up(Timer& timed, std::chrono::milliseconds duration, const auto& f) {
  for (const auto end = std::chrono::steady_clock::now() + duration; std::chrono::steady_clock::now() < end;) timed(20, f);
}

/// The matrix products of a step on their own memory: forward, the gradient of each weight, and the gradient of each input but the first.
template <class T>
class Floor {
  using Gradient = pdp::Accumulated<T>;

 public:
  Floor(const pdp::cuda::Device& device, const std::vector<Index>& widths, Index rows) : device_{device}, widths_{widths}, rows_{rows} {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      values_.push_back(filled<T>(rows * widths[i], i));
      gradients_.push_back(filled<T>(rows * widths[i], 100 + i));
      if (i == 0) continue;
      weights_.push_back(filled<T>(widths[i - 1] * widths[i], 200 + i));
      weight_gradients_.push_back(filled<Gradient>(widths[i - 1] * widths[i], 300 + i));
    }
  }

  void run() {
    replay(device_, recordings_, std::array<Index, 1>{0}, [this] {
      using In = Matrix<const T>;
      const auto value = [&](std::size_t i) { return Matrix<T>{values_[i].data(), rows_, widths_[i]}; };
      const auto gradient = [&](std::size_t i) { return Matrix<T>{gradients_[i].data(), rows_, widths_[i]}; };
      const auto weight = [&]<class E>(std::vector<Memory<E>>& of, std::size_t i) {
        return Matrix<E>{of[i].data(), widths_[i], widths_[i + 1]};
      };
      for (std::size_t i = 0; i < weights_.size(); ++i) gemm(device_, In{value(i)}, In{weight(weights_, i)}, value(i + 1), false);
      for (std::size_t i = weights_.size(); i-- > 0;) {
        if (i > 0) gemm_nt(device_, In{gradient(i + 1)}, In{weight(weights_, i)}, gradient(i), false);
        gemm_tn(device_, In{value(i)}, In{gradient(i + 1)}, weight(weight_gradients_, i), false);
      }
    });
  }

 private:
  template <class E>
  Memory<E> filled(Index elements, std::size_t key) {
    auto memory = allocate<E>(device_, elements);
    fill_uniform(device_, pdp::random::make_key(1, key), 1, pdp::random::Elements{}, memory.span());
    return memory;
  }

  const pdp::cuda::Device& device_;
  std::vector<Index> widths_;
  Index rows_;
  std::vector<Memory<T>> values_, gradients_, weights_;
  std::vector<Memory<Gradient>> weight_gradients_;
  pdp::cuda::Device::Recordings recordings_;
};

template <class Precision, class Config>
void measure(const Config& config, const Settings& settings) {
  const pdp::cuda::Device device{{.tf32 = settings.precision == "tf32",
                                  .fused_relu = settings.fused_relu,
                                  .overlapped_weight_gradients = settings.overlapped_weight_gradients,
                                  .graphs = settings.graphs}};
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, config.task, {.global_batch = config.rows}, device, Precision{}};
  using Target = typename decltype(trainer)::Target;
  const bench::Batches<Target> batches{config.rows, config.widths.front(), config.widths.back(), 0};
  auto x = allocate<float>(device, static_cast<Index>(batches.x().size()));
  auto y = allocate<Target>(device, static_cast<Index>(batches.y().size()));
  upload(device, std::span{batches.x()}, x.data());
  upload(device, std::span{batches.y()}, y.data());
  const auto step = [&] {
    trainer.engine().start({{x.data(), config.rows, config.widths.front()}, std::as_const(y).span(), config.rows, /*on_device*/ true});
  };
  Floor<typename Precision::compute> floor{device, config.widths, config.rows};
  Timer timed{device};
  const auto run_floor = [&] { floor.run(); };
  step();
  const double first = trainer.finish().mean_loss();
  warm_up(timed, std::chrono::milliseconds{500}, step);
  warm_up(timed, std::chrono::milliseconds{100}, run_floor);
  const auto make_blocks = [&](int pairs) {
    std::vector<double> steps, floors;
    for (int pair = 0; pair < pairs; ++pair)
      for (const bool is_step : {pair % 2 == 0, pair % 2 != 0})
        if (is_step)
          steps.push_back(timed(settings.steps, step));
        else
          floors.push_back(timed(settings.steps, run_floor));
    std::printf(
        "{\"config\": \"%s\", \"gpu\": \"%s\", \"precision\": \"%s\", \"graphs\": %s, \"fused_relu\": %s, "
        "\"overlapped_weight_gradients\": %s, \"median_us\": %.3f, \"floor_us\": %.3f, "
        "\"first_loss\": %.6g, \"last_loss\": %.6g}\n",
        settings.config.c_str(), device.describe().c_str(), settings.precision.c_str(), settings.graphs ? "true" : "false",
        settings.fused_relu ? "true" : "false", settings.overlapped_weight_gradients ? "true" : "false", bench::median(steps),
        bench::median(floors), first, trainer.finish().mean_loss());
    std::fflush(stdout);
  };
  if (!settings.turns) return make_blocks(settings.pairs);
  for (std::string line; std::getline(std::cin, line);) {
    warm_up(timed, std::chrono::milliseconds{30}, step);
    make_blocks(2);
  }
}

template <class Config>
void measure(const Config& config, const Settings& settings) {
  if (settings.precision == "bfloat16") return measure<pdp::MixedBfloat16>(config, settings);
  if (settings.precision == "float32" || settings.precision == "tf32") return measure<pdp::Float32>(config, settings);
  throw pdp::UsageError{pdp::text("--precision ", settings.precision, " is unknown; use float32, tf32 or bfloat16")};
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
    else if (word == "--precision")
      settings.precision = value();
    else if (word == "--turns")
      settings.turns = true;
    else if (word == "--no-graphs")
      settings.graphs = false;
    else if (word == "--fused-relu")
      settings.fused_relu = true;
    else if (word == "--serial-weight-gradients")
      settings.overlapped_weight_gradients = false;
    else if (word == "--steps")
      settings.steps = parse_number(word, value(), 1, 1'000'000'000);
    else if (word == "--pairs")
      settings.pairs = parse_number(word, value(), 1, 1'000'000);
    else
      throw pdp::UsageError{pdp::text("unknown argument ", word,
                                      "; usage: gpu_step --config toy|mnist|ae|wide [--precision float32|tf32|bfloat16] [--no-graphs] "
                                      "[--fused-relu] [--serial-weight-gradients] [--steps N] [--pairs P | --turns]")};
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
      throw pdp::UsageError{pdp::text("--config ", settings.config, " is unknown; use toy, mnist, ae or wide")};
    return 0;
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return 2;
  } catch (const pdp::Error& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return 1;
  }
}
