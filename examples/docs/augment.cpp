// The program of docs/how-to/augment.md. It trains on 1,000 handwritten digits
// as they are, and on digits that move and get noise in each epoch: augment

#include <cstddef>
#include <span>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/image_changes.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;

// [noise]
/// Adds normal noise to each value.
void add_noise(pdp::random::Key key, std::span<float> sample) {
  for (std::size_t i = 0; i < sample.size(); ++i)
    sample[i] += 0.1f * pdp::random::normal(key, pdp::as_index(i));
}
// [noise]

constexpr pdp::Task digits{
    nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 2e-3f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const auto all = pdp::data::Mnist{"examples/data/mnist"}.train();
    const auto train = all.part(0, 1000), others = all.part(1000, 9000);
    const auto accuracy_after = [&](const auto& set) {
      pdp::Trainer trainer{world,
                           pdp::strategy::DataParallel{},
                           digits,
                           {.global_batch = 50, .seed = 1}};
      trainer.fit(set, {.epochs = 30}, [](const pdp::Epoch&) {});
      return trainer.accuracy(others);
    };
    pdp::print(world, "accuracy {:.2f}", accuracy_after(train));
    // [augmented]
    const pdp::data::RandomShift shift{train.sample_shape(), 2,
                                       train.background};
    const pdp::data::Augmented moving{train, shift};
    const pdp::data::Augmented noisy{moving, add_noise};
    // [augmented]
    pdp::print(world, "accuracy with changes {:.2f}", accuracy_after(noisy));
  });
}
