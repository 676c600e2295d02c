#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/launch/start/number.hpp>

#include "flags.hpp"

namespace examples {

/// The command line of an example, and the flags that several examples have.
class CommandLine : public CLI::App {
 public:
  CommandLine(int argc, char** argv, const std::string& description);

  /// Adds a flag that takes a number from `least` to `most`, read as pdp::launch::Options::from reads one: in every locale alike, the whole
  /// word, and with an error that names the range and the first long one of `names`. A std::optional has no default to show.
  template <class Variable, class Number>
  CLI::Option* number(const std::string& names, Variable& variable, Number least, Number most, const std::string& text) {
    const std::string name = names.substr(names.find("--"), names.find(',', names.find("--")) - names.find("--"));
    CLI::Option* flag = add_option_function<std::string>(
        names, [=, &variable](const std::string& words) { variable = pdp::launch::parse_number(name, words, least, most); }, text);
    flag->type_name(pdp::text("NUMBER:{", least, " to ", most, "}"));
    if constexpr (std::is_arithmetic_v<Variable>) flag->default_str(pdp::text(variable));
    return flag;
  }
  /// Adds a flag that takes words, such as a path. Refuses empty ones, which come from a variable that is not set (--load "$CHECKPOINT"):
  /// the program would do without. Of `--load= --epochs 3` CLI11 takes the next flag for the path, so words that begin with -- are refused,
  /// too. `what`: what the flag needs, for the error.
  CLI::Option* words(const std::string& names, std::string& variable, const std::string& text, const std::string& what = "a path");
  /// Adds a flag that takes one of some words.
  void choice(const std::string& name, std::string& variable, const std::vector<std::string>& words, const std::string& text);

  /// Adds --ranks, --threads and --comm, and the check of all options. `unless_said`: how many ranks there are by default, in words.
  void ranks(pdp::launch::Options& options, const std::string& unless_said = {});
  /// Adds the flags of every program that trains. `batch`: whose samples --batch-size counts.
  void training(TrainingFlags& flags, const std::string& batch);

  /// Reads the words, then calls `check`, which throws if they do not fit together. Ends the program with 0 after --help, with 1 if its
  /// text cannot be written, and with 2 after a wrong command line.
  void read(const std::function<void()>& check);

 private:
  std::vector<std::string> words_;  // the last one first
};

}  // namespace examples
