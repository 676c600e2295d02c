#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include <pdp/core/error.hpp>

namespace examples {

/// Adds a flag that takes words, such as a path. Refuses empty ones, which come from a variable that is not set (--load "$CHECKPOINT"): the
/// program would do without. Of `--load= --epochs 3` CLI11 takes the next flag for the path, so words that begin with -- are refused, too.
/// `what`: what the flag needs, for the error.
inline CLI::Option* add_path_flag(CLI::App& app, const std::string& names, std::string& variable, const std::string& description,
                                  const std::string& what = "a path") {
  return app.add_option(names, variable, description)
      ->check(
          [what](const std::string& words) {
            if (words.empty()) return pdp::text("needs ", what, "; found an empty value");
            if (words.starts_with("--")) return pdp::text("needs ", what, "; found the flag ", words);
            return std::string{};
          },
          "");
}

}  // namespace examples
