// A model of the prices in a CSV file, which is validated, stops early and is loaded again:
// csv_surrogate TRAIN.csv HELD_OUT.csv FOLDER --ranks 2
#include <filesystem>
#include <functional>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/data/csv.hpp>
#include <pdp/data/normalised.hpp>
#include <pdp/pdp.hpp>
#include <pdp/train/column_statistics.hpp>

namespace nn = pdp::nn;
using Comm = pdp::comm::Default;

constexpr pdp::Task task{nn::Sequential{nn::Linear{3, 32}, nn::Tanh{}, nn::Linear{32, 1}}, pdp::loss::MeanSquaredError{},
                         pdp::optim::Adam{.lr = 0.01f}};

int main(int argc, char** argv) {
  const std::filesystem::path train_file = argv[1], held_out_file = argv[2], folder = argv[3];
  return pdp::launch::run<Comm>(argc, argv, [&](Comm& world) {
    const pdp::data::CsvOptions columns{.inputs = {"area", "year", "distance"}, .targets = {"price"}};
    const auto raw = pdp::data::read_csv<float>(train_file, columns);
    const auto statistics = pdp::column_statistics(world, raw);
    const auto train = pdp::data::normalised(raw, statistics);
    const auto held_out = pdp::data::normalised(pdp::data::read_csv<float>(held_out_file, columns), statistics);

    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = 32, .seed = 1}};
    pdp::KeepBest best;
    const auto history = trainer.fit(train, {.epochs = 300,
                                             .validation = &held_out,
                                             .metrics = {pdp::metric::RSquared{}},
                                             .callbacks = {std::ref(best), pdp::EarlyStopping{.patience = 15}}});
    trainer.save(folder, {});

    pdp::Trainer again{world, pdp::strategy::Zero{}, task, {.global_batch = 32, .seed = 2}};
    again.load(folder);
    const double loss = again.evaluate(held_out).mean_loss(), apart = loss / best.value - 1;
    const bool stopped = history.size() < 300, same = apart < 1e-5 && apart > -1e-5;
    pdp::print(world, "{}, {}, {}", stopped ? "stopped early" : "not stopped",
               same ? "the best epoch was loaded" : "another epoch was loaded",
               history[static_cast<std::size_t>(best.epoch)].value("R2") > 0.8 ? "R2 above 0.8" : "R2 of 0.8 or less");
  });
}
