#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// The flags of a program, besides those that launch::run reads.
struct ProgramFlags {
  std::string help{};  // printed for --help. Each word in it that begins with -- is the name of a flag
};

/// A program's own arguments, in their order, without pdp's flags and the name of the program.
using Arguments = std::vector<std::string>;

/// A flag that launch::run reads.
struct Flag {
  std::string_view name;     // "--ranks"
  std::string_view value;    // "N"
  std::string_view meaning;  // for the help text
};
inline constexpr Flag flags_of_run[]{
    {"--ranks", "N", "start N processes on this machine, each a rank (1 to 4096)"},
    {"--threads", "N", "run N ranks as threads of this process (1 to 4096)"},
    {"--restarts", "N", "start the processes again up to N times after one has failed (0 to 1000)"},
    {"--comm", "NAME", "use this communicator of the program"},
    {"--rendezvous", "URL", "find the other ranks at env://, tcp://HOST:PORT or file:///FOLDER"},
};

/// Returns whether a command line has an argument --help before an argument --.
[[nodiscard]] bool asks_for_help(int argc, const char* const* argv);

/// Returns the text for --help: that of the program, and a line for each flag of launch::run.
[[nodiscard]] std::string help_text(const ProgramFlags& program);

/// Returns the flag of launch::run that an argument is a misspelling of, or an empty name: --rank, --thread=4 or -ranks. A flag that the
/// program's help names is none.
[[nodiscard]] std::string_view intended_flag(std::string_view argument, const ProgramFlags& program);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/source/program_flags.hpp>
#endif
