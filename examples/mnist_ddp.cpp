// A classifier of handwritten digits, trained on data-parallel ranks: threads, processes of this machine, or processes of several.
//
//   mnist_ddp --ranks 2                        two processes on this machine
//   mnist_ddp --ranks 2 --comm shm             the same, connected by memory that they share and not by TCP
//   mnist_ddp -n 2 -g 4 -nr 0 -ip 10.0.0.1     the first of two machines with four processes each

#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/pdp.hpp>

#include "common/flags.hpp"
#include "common/parameters.hpp"
#include "common/record.hpp"

namespace nn = pdp::nn;
using Strategy = pdp::parallel::DataParallel;

constexpr pdp::Task digit_classifier{
    nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 10}},
    pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};

int main(int argc, char** argv) {
  const auto flags =
      examples::parse(argc, argv, "Trains a classifier of handwritten digits on data-parallel ranks.", examples::Ranks::several);

  return pdp::launch::run<pdp::comm::Tcp, pdp::comm::Shm>(flags.launch, [&](auto& world) {
    const pdp::data::Mnist digits{flags.data};
    examples::Record record{flags, world.rank()};
    pdp::Trainer trainer{world, Strategy{}, digit_classifier, {.global_batch = flags.batch_size * world.size(), .seed = flags.seed}};
    auto& model = trainer.engine().stage();
    if (!flags.save.empty() && world.rank() == 0) examples::check_writable(flags.save);
    if (!flags.load.empty()) pdp::checkpoint::import_parameters(model, examples::load(flags.load), flags.load);

    const auto after_epoch = [&](const pdp::Epoch& epoch) {
      pdp::print_epoch(world, epoch);
      if (record.wants_epochs()) record.epoch(epoch, trainer.accuracy(digits.test()));
      if (!flags.save.empty() && world.rank() == 0) examples::save(flags.save, pdp::checkpoint::export_parameters(model));
    };
    const auto after_step = [&](auto step, const auto& totals) { record.step(step, totals.mean_loss()); };
    trainer.fit(digits.train(), {.epochs = flags.epochs}, after_epoch, after_step);

    pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
  });
}
