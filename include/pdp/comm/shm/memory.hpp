#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/memory_file.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::shm {

/// Throws ConfigError: "cannot VERB the shared memory of this host's ranks", and the cause. `reason`: an errno.
[[noreturn]] inline void fail_to(const char* verb, int reason) {
  throw ConfigError{text("cannot ", verb, " the shared memory of this host's ranks: ", describe_system_error(reason),
                         reason == EFBIG ? "; raise the limit of a file's size (ulimit -f), or use --comm tcp"
                         : reason == EPERM || reason == ENOSYS
                             ? "; a container may deny memfd_create; use another communicator, such as tcp"
                             : "")};
}

/// Creates a file of `bytes` zeros in memory. It has no name, because a name could clash or be left behind. It is sealed, so that no
/// process can change its size. Throws ConfigError if the system cannot create it.
inline Descriptor make_file(std::size_t bytes) {
  Descriptor file = create_memory_file("pdp");
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail_to("create", errno);
  return file;
}

/// Returns the path of another process's file. `address`: the process id and the number of the descriptor there. Opening the path fails if
/// there is no such process (ENOENT), or if it belongs to another user.
inline std::string path_of(const SharedAddress& address) { return text("/proc/", address.space, "/fd/", address.place); }
inline Descriptor open_file(const SharedAddress& address) { return Descriptor{::open(path_of(address).c_str(), O_RDWR | O_CLOEXEC)}; }

/// Memory of one rank that other ranks of its host can open. Their mappings may outlive this object.
class Memory {
 public:
  /// Creates zeroed memory. Throws ConfigError if the system has none.
  static Memory create(std::size_t bytes) { return Memory{make_file(mapped(bytes)), bytes}; }
  /// Opens the memory of another rank. Throws ConfigError if it cannot be opened or has another size.
  static Memory open(const SharedAddress& address, std::size_t bytes) {
    Descriptor file = open_file(address);
    if (!file) fail_to("open", errno);
    struct stat about {};
    if (::fstat(file.get(), &about) != 0 || as_size(about.st_size) != mapped(bytes))
      throw ConfigError{text("a rank of this host shares ", about.st_size, " bytes of memory, but ", bytes, " were expected")};
    Memory memory{std::move(file), bytes};
    memory.file_.close();
    return memory;
  }

  Memory(Memory&& other) noexcept : file_{std::move(other.file_)}, data_{std::exchange(other.data_, nullptr)}, bytes_{other.bytes_} {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (data_ != nullptr) ::munmap(data_, mapped(bytes_));
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

  /// Returns the address by which others open the memory, until close().
  [[nodiscard]] SharedAddress address() const {
    return {.space = static_cast<std::uint64_t>(::getpid()), .place = static_cast<std::uint64_t>(file_.get())};
  }
  void close() { file_.close(); }

  /// Allocates all pages now, instead of one by one on first access, and large pages for memory of 1 MiB or more. New pages lie on the NUMA
  /// node of the calling thread. Linux before 5.14 allocates pages on first access, and Linux before 6.1 does not make large pages on
  /// request.
  void populate() {
#ifdef MADV_POPULATE_WRITE
    ::madvise(data_, mapped(bytes_), MADV_POPULATE_WRITE);
#endif
    if (bytes_ >= large_from) ::madvise(data_, mapped(bytes_), collapse);
  }

 private:
  static constexpr std::size_t large_page = std::size_t{2} << 20;  // on x86-64, and on aarch64 with pages of 4 KiB
  static constexpr std::size_t large_from = large_page / 2;
  static constexpr int collapse = 25;  // MADV_COLLAPSE, which older headers lack

  static std::size_t mapped(std::size_t bytes) { return bytes < large_from ? bytes : (bytes + large_page - 1) / large_page * large_page; }

  Memory(Descriptor file, std::size_t bytes) : file_{std::move(file)}, bytes_{bytes} {
    // Large pages need an address that is a multiple of their size. So this reserves more addresses, and releases the excess.
    const std::size_t length = mapped(bytes), spare = bytes < large_from ? 0 : large_page;
    void* const room = ::mmap(nullptr, length + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) fail_to("map", errno);
    auto* const begin = static_cast<std::byte*>(room);
    const std::size_t before = spare == 0 ? 0 : (large_page - reinterpret_cast<std::uintptr_t>(begin) % large_page) % large_page;
    if (before > 0) ::munmap(begin, before);
    if (spare > before) ::munmap(begin + before + length, spare - before);
    data_ = begin + before;
    if (::mmap(data_, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(), 0) == MAP_FAILED) {
      const int reason = errno;
      ::munmap(std::exchange(data_, nullptr), length);
      fail_to("map", reason);
    }
  }

  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace pdp::comm::shm
