#include "flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <vector>

#include <pdp/launch/start/environment.hpp>
#include <pdp/strategy/mesh.hpp>

#include "comm_flag.hpp"
#include "device_flag.hpp"
#include "end.hpp"
#include "number_flag.hpp"
#include "path_flag.hpp"
#include "report_flags.hpp"

namespace examples {

namespace {

/// -nr and -ip are words of two letters behind one dash, as the original program writes them: given to the parser as long flags.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i >= 1; --i) {  // the parser takes them from the back
    std::string word = argv[i];
    for (const std::string name : {"-nr", "-ip"})
      if (word == name || word.rfind(name + "=", 0) == 0) word.insert(0, 1, '-');
    words.push_back(word);
  }
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
  pdp::open_standard_streams();
  Flags flags;
  flags.data = std::string{PDP_EXAMPLE_DATA} + "/mnist";
  flags.launch.port = 8888;

  CLI::App app{description, argc > 0 ? argv[0] : ""};
  app.get_formatter()->column_width(44);
  add_number_flag(app, "--epochs", flags.epochs, 0, 1'000'000, "passes over the training set");
  add_number_flag(app, "--batch-size,--batch_size", flags.batch_size, std::int64_t{1}, std::int64_t{1} << 30,
                  takes.devices ? "samples of a step, on all devices together" : "samples of a step, on each rank");
  add_number_flag(app, "--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
                  "of the first parameters and of the order of samples");
  add_path_flag(app, "--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  add_path_flag(app, "-s,--save,--savefile", flags.save, "write the parameters here after each epoch (safetensors)");
  add_path_flag(app, "--load", flags.load, "read the parameters from here first (safetensors, also PyTorch's)");
  add_path_flag(app, "--log", flags.log, "write one JSON object per epoch here");
  add_device_flag(app, flags.device);
  add_report_flags(app, flags);
  if (takes.stage)
    add_number_flag(app, "--stage", flags.stage, 1, 3, "1: the optimizer's state is cut, 2: gradients too, 3: parameters too");
  if (takes.pipelined)
    app.add_flag("--pipelined", flags.pipelined, "cut a batch in pieces of at most 20 samples, which follow one another");
  if (takes.schedule) {
    app.add_option("--schedule", flags.schedule, "in which order the ranks work")
        ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved", "zero-bubble"}))
        ->capture_default_str();
    add_number_flag(app, "--micro-batches", flags.micro_batches, 1, 1 << 14, "pieces of a batch, which follow one another");
  }
  if (takes.mesh) {
    const auto add_axis = [&](const char* name, int& axis, const char* what) {
      return add_number_flag(app, name, axis, 1, pdp::launch::most_ranks, what);
    };
    add_axis("--dp", flags.data_axis, "ranks that share the data (default: as many as there are for)")->default_str("");
    add_axis("--pp", flags.pipeline_axis, "stages of a pipeline");
    add_axis("--tp", flags.tensor_axis, "ranks over which layers are divided");
  }
  if (takes.devices) {
    add_number_flag(app, "--devices,--threads", flags.launch.threads.emplace(2), 1, pdp::launch::most_local_ranks,
                    "threads over which each batch is scattered");
  }
  if (takes.ranks) {
    add_number_flag(app, "--ranks", flags.launch.ranks, 1, pdp::launch::most_local_ranks, "start this many local processes");
    add_number_flag(app, "--threads", flags.launch.threads, 1, pdp::launch::most_local_ranks,
                    "run this many ranks as threads of one process");
    add_comm_flag(app, flags.launch);
    add_number_flag(app, "-n,--nodes", flags.launch.nodes, 1, pdp::launch::most_ranks, "machines; the program is started once on each");
    add_number_flag(app, "-g,--gpus", flags.launch.processes_per_node, 1, pdp::launch::most_local_ranks,
                    "processes on each machine; with --device cuda each has a GPU of it, by LOCAL_RANK");
    add_number_flag(app, "-r,--nr", flags.launch.node_rank, 0, pdp::launch::most_ranks - 1, "number of this machine (also -nr)");
    add_path_flag(app, "--rendezvous", flags.launch.rendezvous, "where the ranks meet: env://, tcp://HOST:PORT or file:///FOLDER", "a URL");
    add_path_flag(app, "--ip", flags.launch.address, "address of machine 0, where there are several (also -ip)", "an address");
    add_number_flag(app, "-p,--port", flags.launch.port, 1, 65535, "port at that address, where there are several machines");
  }

  try {
    app.parse(words_of(argc, argv));
    if (takes.mesh) start_a_mesh(flags);
    flags.launch.check();
  } catch (const CLI::Success& wanted) {
    end_after(app, wanted);
  } catch (const std::exception& error) {
    end_after(app, error);
  }
  return flags;
}

}  // namespace examples
