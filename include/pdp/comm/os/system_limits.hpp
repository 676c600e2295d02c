#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <pdp/core/error.hpp>

namespace pdp::comm {

/// Raises the soft limit of open files to the hard limit, as far as the system allows. Shells and systemd set a soft limit of 1024 for
/// programs that use select(). pdp does not use select(), and a rank needs a descriptor for each rank that it is connected to.
inline void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

/// Returns whether an error means that this process or the machine has run out of descriptors or memory.
inline bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

/// Describes an errno in words. If a limit is the cause, names the limit and its value: for open files the hard limit, to which
/// raise_descriptor_limit() raises the soft one, otherwise the soft limit.
inline std::string describe_system_error(int error) {
  std::string words = std::strerror(error);
  const auto limit = [](auto resource, rlim_t rlimit::*kind) {
    rlimit found{};
    if (::getrlimit(resource, &found) != 0 || found.*kind == RLIM_INFINITY) return std::string{"unlimited"};
    return std::to_string(found.*kind);
  };
  switch (error) {
    case EMFILE:
      return text(words, "; a process may have ", limit(RLIMIT_NOFILE, &rlimit::rlim_max),
                  " open files here; raise the hard limit (ulimit -Hn, LimitNOFILE)");
    case ENFILE:
      return text(words, "; the machine has reached its limit of open files (sysctl fs.file-max)");
    case EAGAIN:
      return text(words, "; a user may have ", limit(RLIMIT_NPROC, &rlimit::rlim_cur),
                  " processes and threads here (ulimit -u), and a container or job may "
                  "have a limit of its own (pids.max)");
    case ENOMEM:
    case ENOBUFS:
      return text(words, "; a process may have ", limit(RLIMIT_AS, &rlimit::rlim_cur),
                  " bytes of address space here (ulimit -v), and a container or job may "
                  "have a limit of its own (memory.max)");
    default:
      return words;
  }
}

}  // namespace pdp::comm
