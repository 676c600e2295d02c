#pragma once

#include <sys/mman.h>

#include <cerrno>

#include <pdp/comm/os/descriptor.hpp>

namespace pdp::comm {

/// Creates an empty file in memory that has no name in any folder, can be sealed, and cannot be executed. Returns an invalid descriptor and
/// sets errno if the system refuses.
///
/// The kernel may add seals and remove permissions. For example, it adds F_SEAL_EXEC if vm.memfd_noexec is set. So compare only the seals
/// that pdp has requested.
inline Descriptor create_memory_file(const char* name) {
  // MFD_NOEXEC_SEAL. If vm.memfd_noexec is 2, the kernel creates no memory file without this flag. Kernels before Linux 6.3 reject the
  // flag.
  constexpr unsigned never_executable = 0x8;
  Descriptor file{::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | never_executable)};
  if (!file && errno == EINVAL) file = Descriptor{::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  return file;
}

}  // namespace pdp::comm
