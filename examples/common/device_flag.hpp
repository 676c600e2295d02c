#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace examples {

/// --device, for the programs that examples::run_on_device runs.
inline void add_device_flag(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "what computes: cpu, or cuda, a GPU for each rank")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
}

}  // namespace examples
