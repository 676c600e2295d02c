#include <pdp/data/classification.hpp>
#include <pdp/pdp.hpp>
#if defined WITH_HIERARCHICAL
#include <pdp/comm/hierarchical.hpp>
using Comm = pdp::comm::Default;
#elif defined WITH_TCP
#include <pdp/comm/tcp.hpp>
using Comm = pdp::comm::Tcp;
#elif defined WITH_SHM
#include <pdp/comm/shm.hpp>
using Comm = pdp::comm::Shm;
#else
using Comm = pdp::comm::Thread;
#endif

#include <stdexcept>

namespace nn = pdp::nn;

constexpr pdp::Task classifier{nn::Sequential{nn::Linear{16, 32}, nn::Relu{}, nn::Linear{32, 4}}, pdp::loss::CrossEntropy{},
                               pdp::optim::Adam{.lr = 1e-2f}};

// Trains, and fails if the loss does not fall.
int main(int argc, char** argv) {
  return pdp::launch::run<Comm>(argc, argv, [](auto& world) {
    const auto samples = pdp::data::make_classification({.samples = 5'000, .width = 16, .classes = 4, .seed = 1});
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, classifier, {.global_batch = 50, .seed = 1}};
    const double before = trainer.evaluate(samples.train).mean_loss();
    trainer.fit(samples.train, {.epochs = 30, .progress = false}, [](const pdp::Epoch&) {});
    const double after = trainer.evaluate(samples.train).mean_loss();
    if (!(after < before / 2)) throw std::runtime_error{"the loss does not fall"};
    pdp::print(world, "{} ranks of {}, loss {:.3f} -> {:.3f}", world.size(), Comm::name, before, after);
  });
}
