#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/stop_requests.hpp>
#include <pdp/train/report_page.hpp>
#include <pdp/train/timeline.hpp>

namespace examples {

CommandLine::CommandLine(int argc, char** argv, const std::string& description)
    : CLI::App{description, argc > 0 ? argv[0] : ""}, words_(argv + std::min(argc, 1), argv + argc) {
  pdp::open_standard_streams();
  get_formatter()->column_width(44);
  std::ranges::reverse(words_);
  // Users may write -nr and -ip with one dash. CLI11 takes long flags only with two, so another dash is added.
  for (std::string& word : words_)
    for (const std::string name : {"-nr", "-ip"})
      if (word == name || word.starts_with(name + "=")) word.insert(0, 1, '-');
}

CLI::Option* CommandLine::words(const std::string& names, std::string& variable, const std::string& text, const std::string& what) {
  const auto check = [what](const std::string& words) {
    if (words.empty()) return pdp::text("needs ", what, "; found an empty value");
    if (words.starts_with("--")) return pdp::text("needs ", what, "; found the flag ", words);
    return std::string{};
  };
  return add_option(names, variable, text)->check(check, "");
}

void CommandLine::file(const std::string& name, std::string& variable, const std::string& text,
                       void (*check)(const std::filesystem::path&)) {
  const auto message = [check](const std::string& path) -> std::string {
    try {
      check(path);
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
    return {};
  };
  words(name, variable, text)->check(message, "FILE");
}

void CommandLine::report(std::string& variable) {
  file("--report", variable, "write a page about the training to this file (.html): curves, times, memory, plan and timeline",
       pdp::check_report_file);
}

void CommandLine::choice(const std::string& name, std::string& variable, const std::vector<std::string>& words, const std::string& text) {
  add_option(name, variable, text)->check(CLI::IsMember(words))->capture_default_str();
}

void CommandLine::ranks(pdp::launch::Options& options, const std::string& unless_said) {
  number("--ranks,--world-size", options.ranks, 1, pdp::launch::most_local_ranks, "start this many local processes" + unless_said);
  number("--threads", options.threads, 1, pdp::launch::most_local_ranks, "run this many ranks as threads of one process");
  number("--restarts", options.restarts, 0, pdp::launch::Options::most_restarts,
         "start the local processes again this many times after one has failed (with --checkpoint they continue)");
  words("--comm", options.comm,
        "communicator of processes: hierarchical (the default), tcp, shm (shared memory of one machine), gloo or mpi; with --device cuda, "
        "nccl (also for threads)",
        "hierarchical, tcp, shm, gloo or mpi");
  final_callback([&options] { options.check(); });
}

void CommandLine::training(TrainingFlags& flags, const std::string& batch) {
  number("--batch-size,--batch_size", flags.batch_size, pdp::Index{1}, pdp::Index{1} << 30, "samples per step, " + batch);
  number("--seed", flags.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
         "seed of the initial parameters, the sample order and any generated samples");
  choice("--device", flags.device, {"cpu", "cuda"}, "device: cpu, or cuda (a GPU for each rank)");
  words("--losses", flags.losses, "write the number and the loss of every step to this file (CSV)");
  file("--timeline", flags.timeline,
       "write a timeline of all ranks in the fifth step to this file (.svg: a picture, .json: a Chrome trace)", pdp::check_timeline_file);
  report(flags.report);
  words("--checkpoint", flags.checkpoint, "save checkpoints to this folder, and continue from the newest one in it")
      ->each([&flags](const std::string& folder) { flags.launch.stops_on_request = !folder.empty(); });
  number("--checkpoint-every", flags.checkpoint_every, pdp::Index{1}, pdp::Index{1} << 40,
         "save a checkpoint after this many steps (default: after each epoch, or after the last step if there are none)")
      ->default_str("");
  add_option_function<std::string>(
      "--stop-after", [&flags](const std::string& time) { flags.stop_after = pdp::parse_stop_after("--stop-after", time); },
      "stop when the program has run for this time (90, 30:00 or 23:50:00), with a checkpoint and exit code 75; needs --checkpoint")
      ->type_name("TIME");
  add_flag("--plan", flags.plan, "print what each rank holds, sends and waits for, without training");
  add_flag_callback(
      "--compare", [&flags] { flags.plan = flags.compare = true; },
      "print a table of the strategies for this model and these ranks, without training");
}

void CommandLine::read(const std::function<void()>& check) {
  try {
    try {
      parse(words_);
      check();
    } catch (const CLI::CallForHelp&) {
      pdp::write_standard_output(help());
      std::exit(0);
    } catch (const std::exception& error) {
      throw pdp::UsageError{pdp::text(error.what(), ". Run ", get_name(), " --help for the flags and their values.")};
    }
  } catch (...) {
    std::exit(pdp::launch::Report::print_current());
  }
}

Flags parse(int argc, char** argv, const std::string& description, Takes takes, const std::function<void(Flags&)>& check) {
  Flags flags;
  pdp::launch::Options& launch = flags.launch;
  flags.data = std::string{PDP_EXAMPLE_DATA} + "/mnist";
  flags.epochs = takes.epochs;
  flags.batch_size = takes.batch_size;
  launch.port = 8888;
  constexpr int most = pdp::launch::most_ranks, most_here = pdp::launch::most_local_ranks;

  CommandLine line{argc, argv, description};
  line.training(flags, takes.devices ? "on all devices together" : "on each rank if the ranks share the data");
  line.number("--epochs", flags.epochs, 0, 1'000'000, "passes over the training set");
  line.words("--data", flags.data, "folder with train-* and t10k-* files of MNIST, or with t10k-* alone")->capture_default_str();
  line.words("-s,--save,--savefile", flags.save, "write the parameters to this file after each epoch (safetensors)");
  line.words("--load", flags.load, "read the parameters from this file before training (safetensors, also PyTorch's)");
  line.words("--log", flags.log, "write one JSON object per epoch to this file");
  if (takes.stage) line.number("--stage", flags.stage, 1, 3, "1: shards the optimizer state, 2: also gradients, 3: also parameters");
  if (takes.pipelined) line.add_flag("--pipelined", flags.pipelined, "split each batch into micro-batches of at most 20 samples");
  if (takes.schedule) {
    line.choice("--schedule", flags.schedule, {"gpipe", "1f1b", "interleaved", "zero-bubble"}, "pipeline schedule");
    line.number("--micro-batches", flags.micro_batches, 1, 1 << 14, "micro-batches per step");
  }
  if (takes.mesh) {
    line.number("--dp", flags.data_axis, 1, most, "ranks that share the data (default: ranks / (pp * tp))")->default_str("");
    line.number("--pp", flags.pipeline_axis, 1, most, "stages of a pipeline");
    line.number("--tp", flags.tensor_axis, 1, most, "ranks over which layers are divided");
  }
  if (takes.devices)
    line.number("--devices,--threads", launch.threads.emplace(2), 1, most_here, "threads over which each batch is scattered");
  if (takes.ranks) {
    line.ranks(launch);
    line.number("-n,--nodes", launch.nodes, 1, most, "machines; the program is started once on each");
    line.number("-g,--gpus", launch.processes_per_node, 1, most_here,
                "processes on each machine; with --device cuda each uses the GPU of its LOCAL_RANK");
    line.number("-r,--nr", launch.node_rank, 0, most - 1, "number of this machine (also -nr)");
    line.words("--rendezvous", launch.rendezvous, "rendezvous: env://, tcp://HOST:PORT or file:///FOLDER", "a URL");
    line.words("--ip", launch.address, "address of machine 0, if there are several (also -ip)", "an address");
    line.number("-p,--port", launch.port, 1, 65535, "port at that address, if there are several machines");
  }
  line.read([&] {
    if (check) check(flags);
  });
  return flags;
}

}  // namespace examples
