#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <type_traits>

#include <pdp/launch/start/number.hpp>

namespace examples {

/// Adds a flag that takes a number from `least` to `most`, read as pdp::launch::Options::from reads one: in every locale alike, the whole
/// word, and with an error that names the range. `names`: as for CLI::App::add_option; the
/// first long one is in the errors. A std::optional has no default to show.
template <class Variable, class Number>
CLI::Option* add_number_flag(CLI::App& app, const std::string& names, Variable& variable, Number least, Number most,
                             const std::string& description) {
  const std::string name = names.substr(names.find("--"), names.find(',', names.find("--")) - names.find("--"));
  CLI::Option* flag = app.add_option_function<std::string>(
      names, [=, &variable](const std::string& words) { variable = pdp::launch::parse_number(name, words, least, most); }, description);
  flag->type_name(pdp::text("NUMBER:{", least, " to ", most, "}"));
  if constexpr (std::is_arithmetic_v<Variable>) flag->default_str(pdp::text(variable));
  return flag;
}

}  // namespace examples
