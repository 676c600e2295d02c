#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/classification.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;

constexpr pdp::Task classifier{nn::Sequential{nn::Linear{16, 32}, nn::Relu{}, nn::Linear{32, 4}}, pdp::loss::CrossEntropy{},
                               pdp::optim::Adam{.lr = 1e-2f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const auto samples = pdp::data::make_classification({.samples = 5'000, .width = 16, .classes = 4, .seed = 1});
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, classifier, {.global_batch = 50, .seed = 1}};
    const double before = trainer.evaluate(samples.train).mean_loss();
    trainer.fit(samples.train, {.epochs = 30});
    pdp::print(world, "{} ranks, loss {:.3f} -> {:.3f}", world.size(), before, trainer.evaluate(samples.train).mean_loss());
  });
}
