#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include <pdp/launch/options.hpp>

namespace examples {

/// --comm, for the programs that examples::run runs.
inline void add_comm_flag(CLI::App& app, pdp::launch::Options& options) {
  app.add_option(
         "--comm", options.comm,
         "what connects processes: hierarchical (if nobody says), tcp, shm (the memory of one machine), gloo or mpi; with --device cuda "
         "nccl, which may connect threads, too")
      ->check([](const std::string& name) { return name.empty() ? "expected hierarchical, tcp, shm, gloo or mpi; found no name" : ""; },
              "NAME");
}

}  // namespace examples
