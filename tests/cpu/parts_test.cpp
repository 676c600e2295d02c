#include <pdp/cpu/parts.hpp>

#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/rows.hpp>
#include <pdp/cpu/update.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace cpu = pdp::cpu;
using cpu::Cpu;
using pdp::Index;
using pdp::Matrix;

TEST_CASE("in_parts covers each index once, and all parts but the last have the minimum length", "[host]") {
  const int threads = GENERATE(1, 2, 3, 7);
  const Index count = GENERATE(as<Index>{}, 0, 1, 63, 64, 200, 1000, 4097), least = GENERATE(as<Index>{}, 1, 5, 64, 300);
  std::mutex mutex;
  std::vector<int> seen(static_cast<std::size_t>(count));
  std::vector<std::pair<Index, Index>> parts;
  cpu::in_parts(Cpu{.threads = threads}, count, least, [&](Index begin, Index end) {
    const std::lock_guard lock{mutex};
    parts.emplace_back(begin, end);
    for (Index i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  CHECK(seen == std::vector<int>(seen.size(), 1));
  CHECK(parts.size() <= static_cast<std::size_t>(threads));
  for (const auto& [begin, end] : parts) CHECK((end == count || (end - begin >= least && (least < 64 || begin % 64 == 0))));
}

TEST_CASE("in_parts runs parts concurrently if oneDNN has threads", "[host]") {
  if (!cpu::has_threads()) return;
  std::atomic<int> begun = 0;
  std::atomic<bool> met = false;
  cpu::in_parts(Cpu{.threads = 2}, 2, 1, [&](Index, Index) {
    begun.fetch_add(1);
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30}; begun < 2;) {
      if (std::chrono::steady_clock::now() > until) return;
      std::this_thread::yield();
    }
    met = true;
  });
  CHECK(met);
}

TEST_CASE("in_parts uses the same threads for loops of different lengths", "[host]") {
  if (!cpu::has_threads()) return;
  const auto tasks = [] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/task"}) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  };
  std::vector<std::filesystem::path> before, after;
  std::thread{[&] {
    const auto loop = [](Index count) { cpu::in_parts(Cpu{.threads = 4}, count, 1, [](Index, Index) {}); };
    loop(4);
    before = tasks();
    for (int i = 0; i < 10; ++i)
      for (const Index count : {1, 2, 3, 4}) loop(count);
    after = tasks();
  }}.join();
  CHECK(after == before);
}

TEST_CASE("CPU operations give equal results with one thread and with several", "[host]") {
  const int threads = GENERATE(2, 3);
  const Index rows = GENERATE(as<Index>{}, 1, 37, 6000), cols = GENERATE(as<Index>{}, 3, PDP_TEST_SANITIZED ? 263 : 1031);
  const auto same = [&](auto&& compute) { CHECK(compute(Cpu{.threads = threads}) == compute(Cpu{})); };
  const std::vector<float> x = support::normal(rows * cols, 1), g = support::normal(rows * cols, 2);
  const auto in = [&](const std::vector<float>& of) { return Matrix<const float>{of.data(), rows, cols}; };

  same([&](const Cpu& cpu) {
    std::vector<float> y(x.size());
    cpu::hyperbolic_tangent(cpu, in(x), Matrix<float>{y.data(), rows, cols});
    return y;
  });
  same([&](const Cpu& cpu) {
    std::vector<float> y = x;
    cpu::add_row(cpu, g.data(), Matrix<float>{y.data(), rows, cols});
    return y;
  });
  for (const bool accumulate : {false, true})
    same([&](const Cpu& cpu) {
      std::vector<float> sums(static_cast<std::size_t>(cols), 3);
      cpu::sum_rows(cpu, in(x), sums.data(), accumulate);
      return sums;
    });
  same([&](const Cpu& cpu) {
    std::vector<float> w = x, state(2 * x.size());
    const pdp::optim::Adam rule{.lr = 0.01f};
    for (std::int64_t step = 1; step <= 3; ++step)
      support::update<2>(cpu, rule, pdp::StepInfo{step, 1}, std::span{w}, std::span{g}, std::span{state});
    return w;
  });
}

TEST_CASE("update flushes denormals to zero on each of its threads", "[host][optim]") {
  std::vector<float> parameters(100'000, 1), velocity(parameters.size(), 1.5f * std::numeric_limits<float>::min());
  const std::vector<float> gradients(parameters.size(), 0);
  support::update<1>(Cpu{.threads = 3}, pdp::optim::Sgd{.momentum = 0.5f}, pdp::optim::StepInfo{}, std::span{parameters},
                     std::span{gradients}, std::span{velocity});
  CHECK(std::ranges::all_of(velocity, [](float each) { return std::fpclassify(each) == FP_ZERO; }));
}
