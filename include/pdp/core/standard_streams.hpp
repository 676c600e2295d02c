#pragma once

#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Opens /dev/null on each closed descriptor of 0 to 2. Otherwise the next file or socket would get that number and receive everything that
/// is printed.
void open_standard_streams();

/// Writes to standard output and flushes it. Throws FileError if this or an earlier write has failed. If standard output is closed, nothing
/// reads it, so that is no error.
void write_standard_output(std::string_view words);

/// Throws FileError as write_standard_output() does if output printed so far cannot be written.
void check_standard_output();

/// Clears the line of the terminal at standard error, which may show a progress bar. Call this before printing a line.
void clear_terminal_line();

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/standard_streams.hpp>
#endif
