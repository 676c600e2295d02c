// A large model learns from data, and a small one in turn from the large one's outputs: two_models --ranks 2
#include <cmath>
#include <span>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;
constexpr pdp::Task large{nn::Sequential{nn::Linear{4, 64}, nn::Tanh{}, nn::Linear{64, 64}, nn::Tanh{}, nn::Linear{64, 2}},
                          pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 3e-3f}};
constexpr pdp::Task small{nn::Sequential{nn::Linear{4, 16}, nn::Tanh{}, nn::Linear{16, 2}}, pdp::loss::MeanSquaredError{},
                          pdp::optim::Sgd{.lr = 0.2f, .momentum = 0.9f}};
constexpr int batch = 64, steps = 800;

/// The samples of a step that this rank takes: four numbers each, and two functions of them.
void draw(int step, pdp::data::Shard share, std::vector<float>& x, std::vector<float>& y) {
  x.clear(), y.clear();
  for (int i = share.index; i < batch; i += share.count) {
    const auto at = static_cast<float>(batch * step + i);
    const float row[] = {std::sin(at), std::sin(1.7f * at), std::sin(2.3f * at), std::sin(3.1f * at)};
    x.insert(x.end(), row, row + 4);
    y.insert(y.end(), {row[0] * row[1], std::cos(row[2] + row[3])});
  }
}

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](pdp::comm::Default& world) {
    pdp::Trainer teacher{world, pdp::strategy::DataParallel{}, large, {.global_batch = batch, .seed = 1}};
    pdp::Trainer student{world, pdp::strategy::Zero{}, small, {.global_batch = batch, .seed = 2}};
    std::vector<float> x, y;
    double taught = 0, learnt = 0;
    for (int step = 0; step < steps; ++step) {
      draw(step, teacher.share(), x, y);
      taught = teacher.step(x, y).mean_loss();
      learnt = student.step(x, teacher.predict(x)).mean_loss();
    }
    pdp::print(world, "{}", taught < 0.01 && learnt < 0.02 ? "both learnt" : "not learnt");
  });
}
