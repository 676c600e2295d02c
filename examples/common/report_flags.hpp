#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include <pdp/train/timeline.hpp>

#include "path_flag.hpp"

namespace examples {

/// What the programs that train tell about it, where they are asked to: --losses, --timeline and --plan.
template <class F>
void add_report_flags(CLI::App& app, F& flags) {
  add_path_flag(app, "--losses", flags.losses, "write step,loss of every step here (CSV)");
  add_path_flag(app, "--timeline", flags.timeline,
                "write when each rank did what in the fifth step here (.svg: a picture, .json: Chrome's trace)")
      ->check(
          [](const std::string& file) -> std::string {
            try {
              pdp::check_timeline_file(file);
            } catch (const std::exception& error) {
              return error.what();
            }
            return {};
          },
          "FILE");
  app.add_flag("--plan", flags.plan, "print what each rank holds, sends and waits for, and train nothing");
}

}  // namespace examples
