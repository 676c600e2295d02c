// Replaces standard error by a pseudo-terminal, to test output to terminals.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>

class Terminal {
 public:
  Terminal() : own_end_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)} {
    if (own_end_ < 0 || ::grantpt(own_end_) != 0 || ::unlockpt(own_end_) != 0) throw std::runtime_error{"no terminal"};
    const int other_end = ::open(::ptsname(own_end_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    ::tcgetattr(other_end, &settings);
    ::cfmakeraw(&settings);
    ::tcsetattr(other_end, TCSANOW, &settings);
    before_ = ::dup(STDERR_FILENO);
    ::dup2(other_end, STDERR_FILENO);
    ::close(other_end);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    restore();
    ::close(own_end_);
  }

  /// Ends the redirection and returns the text that was written.
  std::string words() {
    std::fflush(stderr);
    std::string found;
    std::array<char, 4096> bytes;
    pollfd polled{.fd = own_end_, .events = POLLIN, .revents = 0};
    while (::poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0) {
      const ssize_t count = ::read(own_end_, bytes.data(), bytes.size());
      if (count <= 0) break;
      found.append(bytes.data(), static_cast<std::size_t>(count));
    }
    restore();
    return found;
  }

 private:
  void restore() {
    if (before_ < 0) return;
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    before_ = -1;
  }

  int own_end_;
  int before_ = -1;
};
