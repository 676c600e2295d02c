#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <utility>

#include <pdp/core/standard_streams.hpp>
#include <pdp/train/timeline.hpp>

namespace examples {

CommandLine::CommandLine(int argc, char** argv, const std::string& description) : CLI::App{description, argc > 0 ? argv[0] : ""} {
  pdp::open_standard_streams();
  get_formatter()->column_width(44);
}

CLI::Option* CommandLine::words(const std::string& names, std::string& variable, const std::string& text, const std::string& what) {
  const auto check = [what](const std::string& words) {
    if (words.empty()) return pdp::text("needs ", what, "; found an empty value");
    if (words.starts_with("--")) return pdp::text("needs ", what, "; found the flag ", words);
    return std::string{};
  };
  return add_option(names, variable, text)->check(check, "");
}

void CommandLine::threads(pdp::launch::Options& options) {
  number("--threads", options.threads, 1, pdp::launch::most_local_ranks, "run this many ranks as threads of one process");
  add_option("--comm", options.comm,
             "what connects processes: hierarchical (if nobody says), tcp, shm (the memory of one machine), gloo or mpi; with --device "
             "cuda nccl, which may connect threads, too")
      ->check([](const std::string& name) { return name.empty() ? "expected hierarchical, tcp, shm, gloo or mpi; found no name" : ""; },
              "NAME");
}

void CommandLine::device(std::string& device) {
  add_option("--device", device, "what computes: cpu, or cuda, a GPU for each rank")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

void CommandLine::reports(std::string& losses, std::string& timeline, bool& plan) {
  const auto check = [](const std::string& file) -> std::string {
    try {
      pdp::check_timeline_file(file);
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  };
  words("--losses", losses, "write step,loss of every step here (CSV)");
  words("--timeline", timeline, "write when each rank did what in the fifth step here (.svg: a picture, .json: Chrome's trace)")
      ->check(check, "FILE");
  add_flag("--plan", plan, "print what each rank holds, sends and waits for, and train nothing");
}

void CommandLine::read(std::vector<std::string> words, const std::function<void()>& check) {
  try {
    parse(std::move(words));
    check();
  } catch (const CLI::Success& wanted) {
    try {
      const int code = exit(wanted);
      std::cout.flush();
      pdp::check_standard_output();
      std::exit(code);
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      std::exit(1);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << ". Run " << get_name() << " --help for the flags and what they take.\n";
    std::exit(2);
  }
}

std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i >= 1; --i) words.emplace_back(argv[i]);
  return words;
}

}  // namespace examples
