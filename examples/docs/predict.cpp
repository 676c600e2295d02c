// The program of docs/how-to/predict.md. Threads of a server use one model,
// which the program trains before: predict

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/inference/predictor.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/predictor_of.hpp>
#include <pdp/train/trainer.hpp>

// [model]
namespace nn = pdp::nn;

constexpr nn::Sequential product{nn::Linear{2, 16}, nn::Tanh{},
                                 nn::Linear{16, 1}};
// [model]

// [service]
/// Multiplies numbers from -1 to 1. Any number of threads may call it.
class Multiplier {
 public:
  explicit Multiplier(const std::filesystem::path& checkpoint)
      : predictor_{product, checkpoint, {.rows = 8, .callers = 2}} {}

  [[nodiscard]] float operator()(float a, float b) const {
    const std::array in{a, b};  // one sample
    std::array<float, 1> out{};
    predictor_.predict(in, out);
    return out[0];
  }

 private:
  pdp::PredictorFor<decltype(product)> predictor_;
};
// [service]

/// Trains the model, and saves a checkpoint and a file with the parameters.
void train(const std::filesystem::path& folder, const std::string& file) {
  std::vector<float> x, y;
  for (int a = -5; a <= 5; ++a)
    for (int b = -5; b <= 5; ++b) {
      x.push_back(0.2f * static_cast<float>(a));
      x.push_back(0.2f * static_cast<float>(b));
      y.push_back(0.04f * static_cast<float>(a * b));
    }
  const pdp::data::InMemory<float> products{pdp::Shape{2}, x, y};
  constexpr pdp::Task task{product, pdp::loss::MeanSquaredError{},
                           pdp::optim::Adam{.lr = 1e-2f},
                           pdp::optim::Linear{.steps = 2200, .to = 0.01f}};
  pdp::comm::Self world;
  pdp::Trainer trainer{
      world, pdp::strategy::Single{}, task, {.global_batch = 11, .seed = 1}};
  trainer.fit(products, {.epochs = 200}, [](const pdp::Epoch&) {});
  trainer.save(folder);
  pdp::checkpoint::save(file, trainer.parameters());

  // [trainer]
  const pdp::Predictor now = pdp::predictor_of(trainer);  // on every rank
  // [trainer]
  std::printf("after training: 0.5 * 0.5 = %.2f\n",
              static_cast<double>(now.predict(std::vector{0.5f, 0.5f})[0]));
}

int main() {
  const std::string file = "multiplier.safetensors";
  const auto folder = std::filesystem::path{"multiplier"};
  train(folder, file);

  // [threads]
  const Multiplier multiply{folder};
  std::array<float, 4> results{};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back(
        [&, i] { results[i] = multiply(0.25f * static_cast<float>(i), 0.6f); });
  threads.clear();  // waits for them
  // [threads]
  for (std::size_t i = 0; i < results.size(); ++i)
    std::printf("%.2f * 0.60 = %.2f\n", 0.25 * static_cast<double>(i),
                static_cast<double>(results[i]));

  // [file]
  const pdp::Predictor from_file{product, pdp::checkpoint::load(file), file};
  const std::vector<float> samples{0.5f, 0.5f, -0.5f, 0.2f};  // two of them
  const std::vector<float> outputs = from_file.predict(samples);
  // [file]
  std::printf("from the file: %.2f and %.2f\n", static_cast<double>(outputs[0]),
              static_cast<double>(outputs[1]));
}
