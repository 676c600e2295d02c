#include "flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <vector>

#include <pdp/launch/place.hpp>
#include <pdp/launch/start/environment.hpp>
#include <pdp/strategy/mesh.hpp>

#include "command_line.hpp"

namespace examples {

namespace {

/// The words, where -nr and -ip, words of two letters behind one dash as the original program writes them, are long flags.
std::vector<std::string> with_long_flags(std::vector<std::string> words) {
  for (std::string& word : words)
    for (const std::string name : {"-nr", "-ip"})
      if (word == name || word.starts_with(name + "=")) word.insert(0, 1, '-');
  return words;
}

/// As many local ranks as the axes make, unless the command line or the environment says how many there are.
void start_a_mesh(Flags& flags) {
  pdp::launch::Options& launch = flags.launch;
  if (launch.ranks || launch.threads || launch.processes_per_node || launch.nodes > 1 ||
      pdp::launch::JobPlace::given(pdp::launch::environment))
    return;
  const std::int64_t ranks = pdp::strategy::Mesh{std::max(flags.data_axis, 1), flags.pipeline_axis, flags.tensor_axis}.size();
  if (ranks > pdp::launch::most_local_ranks)
    throw pdp::UsageError{
        pdp::text("--dp, --pp and --tp make ", ranks, " ranks, but at most ", pdp::launch::most_local_ranks, " can be started")};
  launch.ranks = static_cast<int>(ranks);
}

}  // namespace

Flags parse(int argc, char** argv, const std::string& description, Takes takes) {
  Flags flags;
  flags.data = std::string{PDP_EXAMPLE_DATA} + "/mnist";
  flags.launch.port = 8888;

  CommandLine line{argc, argv, description};
  line.number("--epochs", flags.epochs, 0, 1'000'000, "passes over the training set");
  line.number("--batch-size,--batch_size", flags.batch_size, std::int64_t{1}, std::int64_t{1} << 30,
              takes.devices ? "samples of a step, on all devices together" : "samples of a step, on each rank");
  line.number("--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
              "of the first parameters and of the order of samples");
  line.words("--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  line.words("-s,--save,--savefile", flags.save, "write the parameters here after each epoch (safetensors)");
  line.words("--load", flags.load, "read the parameters from here first (safetensors, also PyTorch's)");
  line.words("--log", flags.log, "write one JSON object per epoch here");
  line.device(flags.device);
  line.reports(flags.losses, flags.timeline, flags.plan);
  if (takes.stage) line.number("--stage", flags.stage, 1, 3, "1: the optimizer's state is cut, 2: gradients too, 3: parameters too");
  if (takes.pipelined)
    line.add_flag("--pipelined", flags.pipelined, "cut a batch in pieces of at most 20 samples, which follow one another");
  if (takes.schedule) {
    line.add_option("--schedule", flags.schedule, "in which order the ranks work")
        ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved", "zero-bubble"}))
        ->capture_default_str();
    line.number("--micro-batches", flags.micro_batches, 1, 1 << 14, "pieces of a batch, which follow one another");
  }
  if (takes.mesh) {
    const auto add_axis = [&](const char* name, int& axis, const char* what) {
      return line.number(name, axis, 1, pdp::launch::most_ranks, what);
    };
    add_axis("--dp", flags.data_axis, "ranks that share the data (default: as many as there are for)")->default_str("");
    add_axis("--pp", flags.pipeline_axis, "stages of a pipeline");
    add_axis("--tp", flags.tensor_axis, "ranks over which layers are divided");
  }
  if (takes.devices) {
    line.number("--devices,--threads", flags.launch.threads.emplace(2), 1, pdp::launch::most_local_ranks,
                "threads over which each batch is scattered");
  }
  if (takes.ranks) {
    line.number("--ranks", flags.launch.ranks, 1, pdp::launch::most_local_ranks, "start this many local processes");
    line.threads(flags.launch);
    line.number("-n,--nodes", flags.launch.nodes, 1, pdp::launch::most_ranks, "machines; the program is started once on each");
    line.number("-g,--gpus", flags.launch.processes_per_node, 1, pdp::launch::most_local_ranks,
                "processes on each machine; with --device cuda each has a GPU of it, by LOCAL_RANK");
    line.number("-r,--nr", flags.launch.node_rank, 0, pdp::launch::most_ranks - 1, "number of this machine (also -nr)");
    line.words("--rendezvous", flags.launch.rendezvous, "where the ranks meet: env://, tcp://HOST:PORT or file:///FOLDER", "a URL");
    line.words("--ip", flags.launch.address, "address of machine 0, where there are several (also -ip)", "an address");
    line.number("-p,--port", flags.launch.port, 1, 65535, "port at that address, where there are several machines");
  }

  line.read(with_long_flags(words_of(argc, argv)), [&] {
    if (takes.mesh) start_a_mesh(flags);
    flags.launch.check();
  });
  return flags;
}

}  // namespace examples
