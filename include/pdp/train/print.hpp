#pragma once

#if !__has_include(<fmt/format.h>)
#error "pdp needs fmt 9 or newer (Debian: libfmt-dev)"
#include <see the error above>
#endif
#include <fmt/format.h>

#include <string>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp {

namespace detail {

/// Prints a line on standard output and flushes it. Clears a progress bar first. Throws FileError if the line cannot be written.
void print_line(const std::string& line);
void print_line(fmt::string_view format, fmt::format_args values);

/// Returns the text of a format string. fmt 9 has no get(), and fmt 12.2 deprecates the conversion.
template <class Format>
fmt::string_view text_of(const Format& format) {
  if constexpr (requires { format.get(); })
    return format.get();
  else
    return format;
}

}  // namespace detail

/// Prints a line on standard output, on rank 0 only, and flushes it. Clears a progress bar first. Throws FileError if the line cannot be
/// written.
template <comm::Group C, class... Args>
void print(const C& world, fmt::format_string<Args...> format, Args&&... args) {
  if (world.rank() == 0) detail::print_line(detail::text_of(format), fmt::make_format_args(args...));
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/print.hpp>
#endif
