// The program of docs/how-to/read_data.md. It predicts the prices of houses,
// whose area, year and distance to a city are in .npy files: read_data

#include <cstddef>
#include <vector>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/pdp.hpp>
#include <pdp/train/column_statistics.hpp>

namespace nn = pdp::nn;

constexpr pdp::Task price{
    nn::Sequential{nn::Linear{3, 16}, nn::Tanh{}, nn::Linear{16, 1}},
    pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Default>(argc, argv, [](auto& world) {
    // [npy]
    const pdp::data::Mapped<float> houses{
        pdp::data::map_npy("examples/data/houses/x.npy"),   // [400, 3], float32
        pdp::data::map_npy("examples/data/houses/y.npy")};  // [400], float64
    // [npy]

    // [statistics]
    const auto statistics = pdp::column_statistics(world, houses);
    const auto train = pdp::data::normalised(houses, statistics);
    // [statistics]
    for (std::size_t column = 0; column < statistics.mean.size(); ++column)
      pdp::print(world, "column {}: mean {:.2f}, deviation {:.2f}", column,
                 statistics.mean[column], statistics.deviation[column]);

    // [store]
    pdp::Trainer trainer{world,
                         pdp::strategy::DataParallel{},
                         price,
                         {.global_batch = 40, .seed = 1}};
    pdp::store_statistics(trainer.values(), "inputs", statistics);
    trainer.fit(train, {.epochs = 40}, [](const pdp::Epoch&) {});
    // [store]
    pdp::print(world, "loss {:.3f}", trainer.evaluate(train).mean_loss());

    // [predict]
    const pdp::data::Normalisation normalisation{
        pdp::stored_statistics(trainer.values(), "inputs")};
    std::vector<float> house{120, 1990, 5};  // 120 m2, built in 1990, 5 km away
    normalisation.apply(house);
    const std::vector<float> predicted = trainer.predict(house);
    // [predict]
    pdp::print(world, "a price of {:.1f}", predicted[0]);
  });
}
