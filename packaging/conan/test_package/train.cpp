#include <pdp/data/classification.hpp>
#include <pdp/pdp.hpp>
#ifdef WITH_HIERARCHICAL
#include <pdp/comm/hierarchical.hpp>
#endif
#ifdef WITH_TCP
#include <pdp/comm/tcp.hpp>
#endif
#ifdef WITH_SHM
#include <pdp/comm/shm.hpp>
#endif
#ifdef WITH_GLOO
#include <pdp/comm/gloo.hpp>
#endif
#ifdef WITH_MPI
#include <pdp/comm/mpi.hpp>
#endif
#ifdef INCLUDE_ONEDNN
#include <pdp/cpu/onednn.hpp>
#endif
#ifdef WITH_CSV
#include <pdp/data/csv.hpp>
#endif
#ifdef WITH_NPZ
#include <pdp/data/npz.hpp>
#endif

#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>

namespace nn = pdp::nn;

constexpr pdp::Task classifier{nn::Sequential{nn::Linear{16, 32}, nn::Relu{}, nn::Linear{32, 4}}, pdp::loss::CrossEntropy{},
                               pdp::optim::Adam{.lr = 1e-2f}};

/// The communicators that the package has. Self, which is the last, also allows ranks that are threads.
using Communicators = std::tuple<
#ifdef WITH_HIERARCHICAL
    pdp::comm::Default,
#endif
#ifdef WITH_TCP
    pdp::comm::Tcp,
#endif
#ifdef WITH_SHM
    pdp::comm::Shm,
#endif
#ifdef WITH_GLOO
    pdp::comm::Gloo,
#endif
#ifdef WITH_MPI
    pdp::comm::Mpi,
#endif
    pdp::comm::Self>;

/// Trains and throws if the loss does not fall by a half.
void train(pdp::comm::Any& world) {
#ifdef WITH_ONEDNN
  if (!pdp::cpu::has_onednn({})) throw std::runtime_error{"the package has oneDNN, but matrix products do not use it"};
#endif
#ifdef WITH_CSV
  constexpr std::string_view file = "a,b\n1,2\n";
  const pdp::data::Input input{std::as_bytes(std::span{file})};
  if (pdp::data::read_csv<float>(input, {.targets = {"b"}}).size() != 1) throw std::runtime_error{"a CSV file is not read"};
#endif
#ifdef WITH_NPZ
  const pdp::data::Npz nothing{pdp::data::Input{std::span<const std::byte>{}}};
  if (!nothing.names().empty()) throw std::runtime_error{"an empty .npz file has arrays"};
#endif
  const auto samples = pdp::data::make_classification({.samples = 5'000, .width = 16, .classes = 4, .seed = 1});
  pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, classifier, {.global_batch = 50, .seed = 1}};
  const double before = trainer.evaluate(samples.train).mean_loss();
  trainer.fit(samples.train, {.epochs = 30, .progress = false}, [](const pdp::Epoch&) {});
  const double after = trainer.evaluate(samples.train).mean_loss();
  if (!(after < before / 2)) throw std::runtime_error{"the loss does not fall"};
  pdp::print(world, "{} ranks of {}, loss {:.3f} -> {:.3f}", world.size(), world.name(), before, after);
}

int main(int argc, char** argv) {
  return [&]<class... Comms>(std::tuple<Comms...>*) {
    return pdp::launch::run<Comms...>(argc, argv, train);
  }(static_cast<Communicators*>(nullptr));
}
