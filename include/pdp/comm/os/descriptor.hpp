#pragma once

#include <unistd.h>

#include <utility>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// An owner of a file descriptor, such as that of a socket or a pipe.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int handle) noexcept : handle_{handle} {}
  Descriptor(Descriptor&& other) noexcept : handle_{std::exchange(other.handle_, -1)} {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      handle_ = std::exchange(other.handle_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ >= 0; }
  void close() noexcept {
    if (handle_ >= 0) ::close(std::exchange(handle_, -1));
  }

 private:
  int handle_ = -1;
};

}  // namespace pdp::comm
