#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/shm/memory.hpp>
#include <pdp/comm/shm/parking.hpp>

namespace pdp::comm::shm {

/// By which this rank wakes another one.
class Bell {
 public:
  /// `pipe`: the end to write to, where the other rank may sleep in a poll.
  explicit Bell(Parking& parking, Descriptor pipe = {}) : parking_{&parking}, pipe_{std::move(pipe)} {}

  /// To be called after what the sleeper waits for has been stored in sequentially consistent order.
  void ring() {
    switch (parking_->rouse()) {
      case Parking::awake:
        return;
      case Parking::on_word:
        return parking_->wake();
      case Parking::on_pipe:
        static_cast<void>(::write(pipe_.get(), "", 1));  // a pipe that is full wakes as well
    }
  }

 private:
  Parking* parking_;
  Descriptor pipe_;
};

/// The pipe that a rank sleeps on. Others of its host open it as a file of its process.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) fail_to("make a pipe beside the", errno);
    read_ = Descriptor{ends[0]};
    write_ = Descriptor{ends[1]};
  }

  [[nodiscard]] int descriptor() const { return read_.get(); }
  /// The end that others open.
  [[nodiscard]] int file() const { return write_.get(); }
  /// Nothing where the process has ended that has made it. For reading, too: to write into a pipe that nobody reads is a deadly signal.
  static Descriptor open(const SharedAddress& address) {
    Descriptor end{::open(path_of(address).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    if (!end && errno != ENOENT) fail_to("open a pipe beside the", errno);
    return end;
  }
  /// Takes out whatever has woken its rank.
  void drain() {
    std::array<std::byte, 64> bytes;
    while (::read(read_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    }
  }

 private:
  Descriptor read_, write_;
};

}  // namespace pdp::comm::shm
