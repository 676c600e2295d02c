#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// Returns a text that identifies this host, and this container on it: the kernel's boot id and the namespace of process ids. Throws
/// ConfigError if the boot id cannot be read.
inline std::string this_host() {
  constexpr const char* path = "/proc/sys/kernel/random/boot_id";
  const Descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  std::array<char, 64> boot{};
  const ssize_t bytes = file ? ::read(file.get(), boot.data(), boot.size()) : -1;
  if (bytes < 0) throw ConfigError{text("this host cannot be identified (", path, "): ", describe_system_error(errno))};
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  return std::string(boot.data(), as_size(std::find(boot.begin(), boot.begin() + bytes, '\n') - boot.begin())) + '/' +
         std::string(space.data(), length > 0 ? as_size(length) : 0);
}

/// Throws ConfigError if /proc shows the processes of another PID namespace than that of this process, as after `unshare --pid` without
/// `--mount-proc`. Its paths then lead to other processes, or nowhere. `self`: /proc/self, except in tests.
inline void check_proc(const char* self = "/proc/self") {
  std::array<char, 32> process{};
  const ssize_t length = ::readlink(self, process.data(), process.size());
  const std::string_view found{process.data(), length > 0 ? as_size(length) : 0};
  if (!found.empty() && found != text(::getpid())) {
    throw ConfigError{text("/proc shows the processes of another PID namespace: there, this process is ", found, ", and here it is ",
                           ::getpid(),
                           "; ranks that share memory find each other through /proc, so mount that of this namespace "
                           "(unshare --mount-proc), or use another communicator, such as tcp")};
  }
}

}  // namespace pdp::comm::shm
