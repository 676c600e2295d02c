#pragma once

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace pdp::comm::shm {

/// What tells the processes of one host, and of one container there, from all others: the kernel's run and the name space of process
/// numbers.
inline std::string this_host() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string boot;
  std::getline(file, boot);
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  return boot + '/' + std::string(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace pdp::comm::shm
