// The program of docs/how-to/pytorch.md. It writes the parameters of a trained
// model to a file, and reads them into another trainer: exchange --ranks 2

#include <string>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/comm/hierarchical.hpp>
#include <pdp/pdp.hpp>

// [model]
namespace nn = pdp::nn;

constexpr pdp::Task product{
    nn::Sequential{nn::Linear{2, 16}, nn::Tanh{}, nn::Linear{16, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};
// [model]

/// Returns pairs of numbers and their products.
pdp::data::InMemory<float> products() {
  std::vector<float> x, y;
  for (int a = -5; a < 5; ++a)
    for (int b = -5; b < 5; ++b) {
      x.push_back(0.2f * static_cast<float>(a));
      x.push_back(0.2f * static_cast<float>(b));
      y.push_back(0.04f * static_cast<float>(a * b));
    }
  return {pdp::Shape{2}, x, y};
}

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    const auto data = products();
    const std::string file = "product.safetensors";
    pdp::Trainer trainer{world,
                         pdp::strategy::Zero{.stage = 3},
                         product,
                         {.global_batch = 20, .seed = 1}};
    trainer.fit(data, {.epochs = 50}, [](const pdp::Epoch&) {});

    // [save]
    const auto parameters = trainer.parameters();  // of all ranks, on rank 0
    if (world.rank() == 0) {
      for (const auto& tensor : parameters)
        pdp::print(world, "{}: {} values", tensor.name, tensor.values.size());
      pdp::checkpoint::save(file, parameters);
    }
    world.barrier();  // the file is complete
    // [save]

    // [load]
    pdp::Trainer other{world,
                       pdp::strategy::DataParallel{},
                       product,
                       {.global_batch = 20, .seed = 2}};
    other.set_parameters(pdp::checkpoint::load(file), file);
    // [load]
    pdp::print(world, "loss {:.4f}, and {:.4f} with the parameters of the file",
               trainer.evaluate(data).mean_loss(),
               other.evaluate(data).mean_loss());
  });
}
