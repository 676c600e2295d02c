#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/launch/start/number.hpp>

#include "flags.hpp"

namespace examples {

/// The command line of an example, with the flags that several examples share.
class CommandLine : public CLI::App {
 public:
  CommandLine(int argc, char** argv, const std::string& description);

  /// Adds a flag that takes a number from `least` to `most`. `names` are its names, separated by commas. The whole word must be a number,
  /// in the same form in every locale. An error message has the range and the first long name. If `variable` is a std::optional, the help
  /// text shows no default.
  template <class Variable, class Number>
  CLI::Option* number(const std::string& names, Variable& variable, Number least, Number most, const std::string& text) {
    const std::string name = names.substr(names.find("--"), names.find(',', names.find("--")) - names.find("--"));
    CLI::Option* flag = add_option_function<std::string>(
        names, [=, &variable](const std::string& words) { variable = pdp::launch::parse_number(name, words, least, most); }, text);
    flag->type_name(pdp::text("NUMBER:{", least, " to ", most, "}"));
    if constexpr (std::is_arithmetic_v<Variable>) flag->default_str(pdp::text(variable));
    return flag;
  }
  /// Adds a flag that takes words, such as a path. `what` says what the flag needs, for the error.
  ///
  /// Rejects an empty value, because the program would ignore the flag. It may come from an unset variable (--load "$CHECKPOINT"). Rejects
  /// words that begin with --, because CLI11 reads `--load= --epochs 3` as a path named --epochs.
  CLI::Option* words(const std::string& names, std::string& variable, const std::string& text, const std::string& what = "a path");
  /// Adds a flag that takes the path of an output file. `check` throws ConfigError if it must have another name.
  void file(const std::string& name, std::string& variable, const std::string& text, void (*check)(const std::filesystem::path&));
  /// Adds a flag that takes one of `words`.
  void choice(const std::string& name, std::string& variable, const std::vector<std::string>& words, const std::string& text);

  /// Adds --ranks, --threads and --comm, and the check of all options. `unless_said` describes the default number of ranks in the help
  /// text.
  void ranks(pdp::launch::Options& options, const std::string& unless_said = {});
  /// Adds --report.
  void report(std::string& variable);
  /// Adds the flags of every program that trains. `batch` says in the help text which samples --batch-size counts.
  void training(TrainingFlags& flags, const std::string& batch);

  /// Parses the command line, then calls `check`, which throws if the flags do not fit together. Exits with 0 after --help, with 1 if the
  /// help text cannot be written, and with 2 after an invalid command line.
  void read(const std::function<void()>& check);

 private:
  std::vector<std::string> words_;  // in reverse order, as CLI11 takes them
};

}  // namespace examples
