#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <pdp/core/standard_streams.hpp>

namespace examples {

/// Ends the program after a flag such as --help: with 0, or with 1 and a sentence if its text cannot be written.
[[noreturn]] inline void end_after(const CLI::App& app, const CLI::Success& wanted) {
  try {
    const int code = app.exit(wanted);
    std::cout.flush();
    pdp::check_standard_output();
    std::exit(code);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    std::exit(1);
  }
}

/// Ends the program after a wrong command line.
[[noreturn]] inline void end_after(const CLI::App& app, const std::exception& error) {
  std::cerr << error.what() << ". Run " << app.get_name() << " --help for the flags and what they take.\n";
  std::exit(2);
}

}  // namespace examples
