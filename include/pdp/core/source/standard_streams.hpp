#pragma once

/// Definitions for pdp/core/standard_streams.hpp; see pdp/core/separate_compilation.hpp.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>

namespace pdp {

PDP_INLINE void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDWR);        // the lowest free number; stays open across exec
    if (opened >= 0 && opened != stream) ::close(opened);  // another thread took the number
  }
}

PDP_INLINE void write_standard_output(std::string_view words) {
  errno = 0;
  std::fwrite(words.data(), 1, words.size(), stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const int reason = errno;
  if (::fcntl(STDOUT_FILENO, F_GETFD) < 0) return;
  throw FileError{text("standard output cannot be written: ", reason != 0 ? std::strerror(reason) : "an earlier line is lost",
                       "; redirect it to a disk with free space, or to /dev/null")};
}

PDP_INLINE void check_standard_output() { write_standard_output({}); }

PDP_INLINE void clear_terminal_line() {
  constexpr std::string_view sequence = "\r\033[K";
  if (::isatty(STDERR_FILENO) == 1) std::fwrite(sequence.data(), 1, sequence.size(), stderr);
}

}  // namespace pdp
