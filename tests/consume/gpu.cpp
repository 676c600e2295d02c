#include <pdp/comm/self.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/pdp.hpp>

#include <cstdio>
#include <vector>

#include "rule.hpp"

constexpr pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{4, 8}, pdp::nn::Tanh{}, pdp::nn::Linear{8, 2}}, pdp::loss::CrossEntropy{},
                         SignDescent{}};

/// Trains some steps on a GPU with an optimizer of this project.
int main() try {
  pdp::comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 2}, pdp::cuda::Device{}};
  const std::vector<float> x{1, 2, 3, 4, -1, -2, -3, -4};
  const std::vector<std::int32_t> classes{0, 1};
  const double first = trainer.step(x, classes).loss;
  for (int step = 0; step < 20; ++step) static_cast<void>(trainer.step(x, classes));
  std::printf("%s\n", trainer.step(x, classes).loss < first ? "learnt" : "nothing learnt");
} catch (const pdp::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
