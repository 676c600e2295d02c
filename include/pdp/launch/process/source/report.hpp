#pragma once

/// Definitions for pdp/launch/process/report.hpp; see pdp/core/separate_compilation.hpp.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/launch/process/problem.hpp>
#include <pdp/launch/process/report.hpp>

namespace pdp::launch {

PDP_INLINE int Report::pipe_in(const Variables& environment) {
  const char* words = environment(variable);
  if (words == nullptr) return -1;
  const std::string_view pair{words};
  const char* end = pair.data() + pair.size();
  int handle = -1;
  pid_t launcher = 0;
  const auto [colon, error] = std::from_chars(pair.data(), end, handle);
  if (error != std::errc{} || colon == end || std::from_chars(colon + 1, end, launcher).ec != std::errc{}) return -1;
  // A process that a rank has started inherits the variable, but not the pipe.
  struct stat status {};
  if (launcher != ::getppid() || ::fstat(handle, &status) != 0 || !S_ISFIFO(status.st_mode)) return -1;
  return handle;
}

PDP_INLINE Report::Report(const Variables& environment) {
  const int handle = pipe_in(environment);
  if (handle < 0) return;
  ::fcntl(handle, F_SETFD, FD_CLOEXEC);
  pipe_ = comm::Descriptor{handle};
}

PDP_INLINE void Report::announce_stop(const Variables& environment, bool stops) {
  const char letter = stops ? stop_letter : no_stop_letter;
  const int handle = pipe_in(environment);
  if (handle < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(handle, &letter, 1);
}

PDP_INLINE void Report::finished() const { write(finished_letter, {}); }
PDP_INLINE void Report::problem(const Problem& problem, int rank, int size) const {
  if (to_launcher())
    write(static_cast<char>(problem.kind), problem.message);
  else
    print(problem, size > 1 ? rank : -1);
}

PDP_INLINE void Report::print(const Problem& problem, int rank) {
  const std::string message = printable(problem.message);  // it may contain control characters
  const std::string line = rank < 0 ? text(message, '\n') : text("rank ", rank, ": ", message, '\n');
  std::fflush(stdout);
  clear_terminal_line();
  std::fwrite(line.data(), 1, line.size(), stderr);  // in one call, so that lines of several ranks do not mix
}

PDP_INLINE int Report::print_current() {
  const Problem problem = Problem::current();
  print(problem, -1);
  return problem.exit_code();
}

PDP_INLINE void Report::write(char letter, std::string_view words) const {
  if (!pipe_) return;
  std::string bytes{letter};
  bytes += words.substr(0, longest);
  [[maybe_unused]] const ssize_t written = ::write(pipe_.get(), bytes.data(), bytes.size());
}

}  // namespace pdp::launch
