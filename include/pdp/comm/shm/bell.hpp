#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/comm/shm/memory.hpp>
#include <pdp/comm/shm/parking.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// A bell by which this rank wakes another one.
class Bell {
 public:
  /// `parking`: of the other rank; borrowed. `pipe`: the write end of that rank's Pipe, if it may sleep in a poll.
  explicit Bell(Parking& parking, Descriptor pipe = {}) : parking_{&parking}, pipe_{std::move(pipe)} {}

  /// Wakes the other rank if it sleeps. Call this after a sequentially consistent store of the value that the other rank waits for.
  void ring() {
    switch (parking_->rouse()) {
      case Parking::awake:
        return;
      case Parking::on_word:
        return parking_->wake();
      case Parking::on_pipe:
        static_cast<void>(::write(pipe_.get(), "", 1));  // if the pipe is full, its bytes wake the rank as well
    }
  }

 private:
  Parking* parking_;
  Descriptor pipe_;
};

/// A pipe that wakes a rank from a poll. Other ranks of its host open it as a file of its process.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0)
      throw ConfigError{text("cannot create a pipe that wakes this rank: ", describe_system_error(errno))};
    read_ = Descriptor{ends[0]};
    write_ = Descriptor{ends[1]};
  }

  [[nodiscard]] int descriptor() const { return read_.get(); }
  /// Returns the write end, which other ranks open.
  [[nodiscard]] int file() const { return write_.get(); }
  /// Opens another rank's pipe. Returns an empty Descriptor if that rank's process has ended; throws ConfigError if the pipe cannot be
  /// opened. Opens it for reading, too: a write to a pipe without readers raises SIGPIPE.
  static Descriptor open(const SharedAddress& address) {
    Descriptor end{::open(path_of(address).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    if (!end && errno != ENOENT) throw ConfigError{text("cannot open the pipe that wakes another rank: ", describe_system_error(errno))};
    return end;
  }
  /// Removes the bytes that have woken this rank.
  void drain() {
    std::array<std::byte, 64> bytes;
    while (::read(read_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    }
  }

 private:
  Descriptor read_, write_;
};

}  // namespace pdp::comm::shm
