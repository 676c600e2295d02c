// Trains a convolutional auto-encoder of handwritten digits: 28 x 28 pixels
// become 32 numbers, and these become an image again. The last line is the mean
// squared error of a pixel of unseen digits:
//
//   digits_autoencoder --ranks 2

#include <algorithm>
#include <span>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace {

/// Digits with pixels from 0 to 1, which are the targets, too.
struct Pixels {
  using Target = float;
  pdp::data::Digits digits;

  [[nodiscard]] pdp::Index size() const { return digits.size(); }
  [[nodiscard]] pdp::Shape sample_shape() const { return digits.sample_shape(); }
  [[nodiscard]] pdp::Shape target_shape() const { return pdp::Shape{pdp::data::Digits::pixels}; }
  void gather(std::span<const pdp::Index> which, std::span<float> x, std::span<float> y) const {
    digits.gather_pixels(which, x);
    std::ranges::copy(x, y.begin());
  }
};

using namespace pdp::nn;

constexpr pdp::Task autoencoder{Sequential{Conv2d{1, 8, 3, {.stride = 2, .padding = 1}}, Relu{},   // [1, 28, 28] -> [8, 14, 14]
                                           Conv2d{8, 16, 3, {.stride = 2, .padding = 1}}, Relu{},  // -> [16, 7, 7]
                                           Flatten{}, Linear{16 * 7 * 7, 32},                      // -> [32]
                                           Linear{32, 8 * 28 * 28}, Relu{}, Reshape{8, 28, 28},    // -> [8, 28, 28]
                                           Conv2d{8, 1, 3, {.padding = 1}}},                       // -> [1, 28, 28]
                                pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 2e-3f}};

}  // namespace

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const pdp::data::Mnist digits{"examples/data/mnist"};
    const Pixels train{digits.train()}, test{digits.test()};
    const pdp::TrainerOptions options{.global_batch = 90, .seed = 1, .input = train.sample_shape()};
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, autoencoder, options};
    trainer.fit(train, {.epochs = 5},
                [&](const pdp::Epoch& epoch) { pdp::print(world, "epoch {}: error {:.4f}", epoch.number + 1, epoch.loss); });
    pdp::print(world, "test error {:.4f}", trainer.evaluate(test).mean_loss());
  });
}
