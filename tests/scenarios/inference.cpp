// Threads of a program without ranks predict with the model that the program double_precision has saved: inference FOLDER
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/nn/linear.hpp>

constexpr pdp::nn::Linear law{3, 1};

/// Returns whether a model in float refuses the parameters.
bool is_refused(const std::filesystem::path& folder) {
  try {
    const pdp::Predictor floats{law, folder};
    return false;
  } catch (const pdp::FileError&) {
    return true;
  }
}

int main(int, char** argv) {
  const std::filesystem::path folder = argv[1];
  const pdp::PredictorFor<decltype(law), double> predictor{law, folder, {.rows = 2, .callers = 2}};
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&predictor, &right, thread] {
      for (int call = 0; call < 250; ++call) {
        const double at = 250 * thread + call;
        const std::array x{at, std::sin(at), -at, 0.0, 0.0, at, 1.0, 2.0, 3.0};  // three samples
        std::array<double, 3> y{};
        predictor.predict(x, y);
        const std::array expected{0.45 * at - 1.3 * std::sin(at) + 0.1, 0.25 * at + 0.1, -1.05};
        const bool agree = std::abs(y[0] - expected[0]) + std::abs(y[1] - expected[1]) + std::abs(y[2] - expected[2]) < 1e-9;
        if (agree) ++right;
      }
    });
  threads.clear();  // waits for them
  std::printf("%d of 1000 calls right, floats %s\n", right.load(), is_refused(folder) ? "refused" : "taken");
}
