#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <pdp/comm/join/membership.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/memory_file.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/error.hpp>

namespace pdp::launch {

/// A secret in memory of this process. Other processes of the same user on this host open it by its place(), through /proc. The system
/// denies that to other users. The memory is gone when the process ends.
class SharedSecret {
 public:
  /// Throws ConfigError if the system cannot provide such memory.
  explicit SharedSecret(const comm::Secret& secret) : file_{comm::create_memory_file("pdp secret")} {
    const std::string_view bytes = secret.bytes();
    if (!file_ || ::fchmod(file_.get(), S_IRUSR) != 0 ||
        ::write(file_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ::fcntl(file_.get(), F_ADD_SEALS, seals) != 0)
      throw ConfigError{text("cannot make memory for the job's secret: ", comm::describe_system_error(errno), "; or set PDP_SECRET_FILE")};
  }

  /// Returns the process id and the number of the file descriptor, such as "1234 5".
  [[nodiscard]] std::string place() const { return text(::getpid(), ' ', file_.get()); }

  /// Returns the secret of `size` bytes at `place`, in another process or in this one. `place` may come from a stranger, so the memory
  /// there is checked. Throws ConfigError if the secret cannot be read, or is not in memory that pdp has created for this user.
  static comm::Secret read(std::string_view place, std::size_t size) {
    pid_t process = 0;
    int number = -1;
    const char* const end = place.data() + place.size();
    const auto first = std::from_chars(place.data(), end, process);
    const auto second = first.ptr == end ? first : std::from_chars(first.ptr + 1, end, number);
    if (first.ec != std::errc{} || second.ec != std::errc{} || second.ptr != end || process < 1 || number < 0)
      throw ConfigError{"the host of the job's store sent a malformed location of its secret; do all ranks run the same build?"};
    const std::string path = text("/proc/", process, "/fd/", number);
    const auto refuse = [&](std::string_view why) {
      throw ConfigError{
          text("the secret of this job cannot be read from the process that hosts its store (", path, "): ", why,
               "; the ranks must run as one user on one host and see each other's processes there, or all have the same secret "
               "(PDP_SECRET_FILE)")};
    };
    // A stranger may name any file, and opening a file for reading may have side effects. Opening it with O_PATH has none, and suffices to
    // check the file first.
    const comm::Descriptor found{::open(path.c_str(), O_PATH | O_CLOEXEC)};
    struct stat about {};
    if (!found || ::fstat(found.get(), &about) != 0) refuse(comm::describe_system_error(errno));
    if (!S_ISREG(about.st_mode) || about.st_uid != ::geteuid() || about.st_size != static_cast<off_t>(size) ||
        (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
      refuse("it is not a secret in this user's memory");
    const comm::Descriptor file{::open(text("/proc/self/fd/", found.get()).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) refuse(comm::describe_system_error(errno));
    // The kernel may have added further seals.
    if (const int found_seals = ::fcntl(file.get(), F_GET_SEALS); found_seals < 0 || (found_seals & seals) != seals)
      refuse("it is not in memory that pdp created");
    std::string bytes(size, '\0');
    if (::pread(file.get(), bytes.data(), size, 0) != static_cast<ssize_t>(size)) refuse("it ends early");
    return comm::Secret{std::move(bytes)};
  }

 private:
  static constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

  comm::Descriptor file_;
};

}  // namespace pdp::launch
