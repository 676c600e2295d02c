#include <pdp/core/error.hpp>
#include <pdp/core/standard_streams.hpp>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <string>

#include "catch.hpp"
#include "terminal.hpp"

namespace standard_streams_test {

namespace {

/// Returns the result of `call` in a child process, so that `call` may close descriptors.
bool in_child(const std::function<bool()>& call) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(call() ? 0 : 1);
  int status = 1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

bool is_null_device(int descriptor) {
  struct stat state {};
  return ::fstat(descriptor, &state) == 0 && S_ISCHR(state.st_mode) && state.st_rdev == ::makedev(1, 3) &&
         ::fcntl(descriptor, F_GETFD) == 0;
}

/// Returns the error message of write_standard_output, or "nothing". Redirects standard output to `file` and calls `before` first.
std::string error_of(const char* file, const std::function<void()>& before) {
  std::string found = "nothing";
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  in_child([&] {
    ::dup2(::open(file, O_WRONLY), STDOUT_FILENO);
    before();
    try {
      pdp::write_standard_output("words\n");
    } catch (const pdp::FileError& error) {
      found = error.what();
    }
    return ::write(ends[1], found.data(), found.size()) > 0;
  });
  found.resize(1000);
  found.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], found.data(), found.size()))));
  ::close(ends[0]);
  ::close(ends[1]);
  return found;
}

}  // namespace

TEST_CASE("open_standard_streams opens closed streams on the null device and keeps the others", "[core][standard_streams]") {
  for (int closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    CHECK(in_child([closed] {
      for (int stream = 0; stream < 3; ++stream)
        if ((closed >> stream & 1) != 0) ::close(stream);
      struct stat before[3]{};
      for (int stream = 0; stream < 3; ++stream) ::fstat(stream, &before[stream]);
      pdp::open_standard_streams();
      bool good = ::open("/dev/zero", O_RDONLY) > 2;
      for (int stream = 0; stream < 3; ++stream) {
        struct stat now {};
        ::fstat(stream, &now);
        good = good && ((closed >> stream & 1) != 0 ? is_null_device(stream) : now.st_ino == before[stream].st_ino);
      }
      return good;
    }));
  }
}

TEST_CASE("write_standard_output throws if this or an earlier line cannot be written", "[core][standard_streams]") {
  const auto nothing = [] {};
  CHECK_THAT(error_of("/dev/full", nothing), StartsWith("standard output cannot be written: No space left on device; redirect it"));
  CHECK(error_of("/dev/null", nothing) == "nothing");
  CHECK(error_of("/dev/null", [] { ::close(STDOUT_FILENO); }) == "nothing");
  const std::string later = error_of("/dev/full", [] {
    std::printf("lost\n");
    std::fflush(stdout);
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  });
  CHECK_THAT(later, StartsWith("standard output cannot be written: an earlier line is lost"));
}

TEST_CASE("clear_terminal_line writes its escape sequence to a terminal only", "[core][standard_streams]") {
  Terminal terminal;
  pdp::clear_terminal_line();
  CHECK(terminal.words() == "\r\033[K");

  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  CHECK(in_child([&] {
    ::dup2(ends[1], STDERR_FILENO);
    pdp::clear_terminal_line();
    return true;
  }));
  char letter = 0;
  CHECK(::read(ends[0], &letter, 1) < 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace standard_streams_test
