#pragma once

#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// Opens /dev/null on each of the descriptors 0 to 2 that is closed. Otherwise the next file or socket would get that number, and
/// everything printed would go into it.
void open_standard_streams();

/// Writes to standard output, and flushes it. Throws FileError if that fails, or an earlier write has failed. A closed standard output has
/// no reader and is no error.
void write_standard_output(std::string_view words);

/// Throws as write_standard_output() does, if what the program has printed so far cannot be written.
void check_standard_output();

/// Clears the line of the terminal that standard error shows, on which a progress bar may stand. Writers call it before they print a line.
void clear_terminal_line();

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/standard_streams.hpp>
#endif
