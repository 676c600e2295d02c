#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include <pdp/launch/options.hpp>

namespace examples {

/// --comm, for the programs that have comm::Tcp and comm::Shm.
inline void add_comm_flag(CLI::App& app, pdp::launch::Options& options) {
  app.add_option("--comm", options.comm, "what connects processes: tcp (if nobody says), or shm, the memory of one machine")
      ->check([](const std::string& name) { return name.empty() ? "expected tcp or shm; found no name" : ""; }, "NAME");
}

}  // namespace examples
