#include "flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <pdp/launch/environment.hpp>
#include <pdp/parallel/mesh.hpp>

#include "comm_flag.hpp"
#include "device_flag.hpp"
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
      pdp::launch::Place::given(pdp::launch::environment))
    return;
  const std::int64_t ranks = pdp::parallel::Mesh{std::max(flags.data_axis, 1), flags.pipeline_axis, flags.tensor_axis}.size();
  if (ranks > pdp::launch::most_ranks)
    throw pdp::UsageError{
        pdp::text("--dp, --pp and --tp make ", ranks, " ranks, but at most ", pdp::launch::most_ranks, " can be started")};
  launch.ranks = static_cast<int>(ranks);
}

}  // namespace

Flags parse(int argc, char** argv, const std::string& description, Takes takes) {
  Flags flags;
  flags.data = std::string{PDP_EXAMPLE_DATA} + "/mnist";
  flags.launch.port = 8888;
  int ranks_here = 0, threads = 0, processes = 0;

  CLI::App app{description, argc > 0 ? argv[0] : ""};
  app.get_formatter()->column_width(44);
  app.add_option("--epochs", flags.epochs, "passes over the training set")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--batch-size,--batch_size", flags.batch_size,
                 takes.devices ? "samples of a step, on all devices together" : "samples of a step, on each rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of the first parameters and of the order of samples")->capture_default_str();
  app.add_option("--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  app.add_option("-s,--save,--savefile", flags.save, "write the parameters here after each epoch (safetensors)");
  app.add_option("--load", flags.load, "read the parameters from here first (safetensors, also PyTorch's)");
  app.add_option("--log", flags.log, "write one JSON object per epoch here");
  add_device_flag(app, flags.device);
  add_report_flags(app, flags);
  if (takes.stage)
    app.add_option("--stage", flags.stage, "1: the optimizer's state is cut, 2: gradients too, 3: parameters too")
        ->check(CLI::Range(1, 3))
        ->capture_default_str();
  if (takes.pipelined)
    app.add_flag("--pipelined", flags.pipelined, "cut a batch in pieces of at most 20 samples, which follow one another");
  if (takes.schedule) {
    app.add_option("--schedule", flags.schedule, "in which order the ranks work")
        ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved", "zero-bubble"}))
        ->capture_default_str();
    app.add_option("--micro-batches", flags.micro_batches, "pieces of a batch, which follow one another")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  }
  if (takes.mesh) {
    const CLI::Range axis{1, pdp::launch::most_ranks};
    app.add_option("--dp", flags.data_axis, "ranks that share the data (default: as many as there are for)")->check(axis);
    app.add_option("--pp", flags.pipeline_axis, "stages of a pipeline")->check(axis)->capture_default_str();
    app.add_option("--tp", flags.tensor_axis, "ranks over which layers are divided")->check(axis)->capture_default_str();
  }
  if (takes.devices) {
    threads = 2;
    app.add_option("--devices,--threads", threads, "threads over which each batch is scattered")
        ->check(CLI::Range(1, pdp::launch::most_ranks))
        ->capture_default_str();
  }
  if (takes.ranks) {
    app.add_option("--ranks", ranks_here, "start this many local processes")->check(CLI::PositiveNumber);
    app.add_option("--threads", threads, "run this many ranks as threads of one process")->check(CLI::PositiveNumber);
    add_comm_flag(app, flags.launch);
    app.add_option("-n,--nodes", flags.launch.nodes, "machines; the program is started once on each")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("-g,--gpus", processes, "processes on each machine; with --device cuda each has a GPU of it, by LOCAL_RANK")
        ->check(CLI::PositiveNumber);
    app.add_option("-r,--nr", flags.launch.node_rank, "number of this machine (also -nr)")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--rendezvous", flags.launch.rendezvous, "where the ranks meet: env://, tcp://HOST:PORT or file:///FOLDER");
    app.add_option("--ip", flags.launch.address, "address of machine 0, where there are several (also -ip)");
    app.add_option("-p,--port", flags.launch.port, "port at that address, where there are several machines")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
  }

  try {
    app.parse(words_of(argc, argv));
    if (ranks_here > 0) flags.launch.ranks = ranks_here;
    if (threads > 0) flags.launch.threads = threads;
    if (processes > 0) flags.launch.processes_per_node = processes;
    if (takes.mesh) start_a_mesh(flags);
    flags.launch.check();
  } catch (const CLI::Success& wanted) {
    std::exit(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    std::cerr << error.what() << ". Run " << app.get_name() << " --help for the flags and what they take.\n";
    std::exit(2);
  } catch (const pdp::UsageError& error) {
    std::cerr << error.what() << ". Run " << app.get_name() << " --help for the flags and what they take.\n";
    std::exit(2);
  }
  return flags;
}

}  // namespace examples
