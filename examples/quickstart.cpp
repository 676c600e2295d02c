#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

namespace nn = pdp::nn;
using Comm = pdp::comm::Default;               // or Tcp, Shm, Mpi, Gloo, Nccl, CudaThread, Thread, Self
using Strategy = pdp::strategy::DataParallel;  // or Single, Zero, Pipeline<Schedule>, TensorParallel, Hybrid<Schedule>

constexpr pdp::Task digit_classifier{nn::Sequential{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 64}, nn::Relu{}, nn::Linear{64, 10}},
                                     pdp::loss::CrossEntropy{}, pdp::optim::Adam{.lr = 1e-3f}};

int main(int argc, char** argv) {
  return pdp::launch::run<Comm>(argc, argv, [](auto& world) {
    const pdp::data::Mnist digits{"examples/data/mnist"};
    pdp::Trainer trainer{world, Strategy{}, digit_classifier, {.global_batch = 256, .seed = 1}};
    trainer.fit(digits.train(), {.epochs = 3});  // or the loop by hand: trainer.step(x, y) on spans of your own
    pdp::print(world, "test accuracy {:.4f}", trainer.accuracy(digits.test()));
  });
}
