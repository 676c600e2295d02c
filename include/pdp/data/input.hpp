#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::data {

/// The bytes that a reader parses: a file's, or some in memory (which the caller keeps alive). Nothing is read before it is asked for.
class Input {
 public:
  /// Opens a regular file. Throws FileError.
  explicit Input(const std::filesystem::path& path) : name_{path.string()} {
    do file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // not to wait for the writer of a pipe
    while (file_ < 0 && errno == EINTR);
    if (file_ < 0) fail("open", errno);
    struct stat about {};
    const int status = ::fstat(file_, &about);
    if (status != 0 || !S_ISREG(about.st_mode)) {
      const int reason = errno;
      ::close(std::exchange(file_, -1));
      if (status != 0) fail("examine", reason);
      const char* kind = "a device";
      if (S_ISDIR(about.st_mode)) kind = "a directory";
      if (S_ISFIFO(about.st_mode)) kind = "a pipe";
      throw FileError{text(name_, ": expected a regular file, found ", kind, ". Give the path of a file.")};
    }
    size_ = static_cast<std::uint64_t>(about.st_size);
  }

  /// `name` stands for the path in messages.
  explicit Input(std::span<const std::byte> bytes, std::string name = "bytes in memory")
      : name_{std::move(name)}, memory_{bytes}, size_{bytes.size()} {}

  Input(Input&& other) noexcept
      : name_{std::move(other.name_)}, file_{std::exchange(other.file_, -1)}, memory_{other.memory_}, size_{other.size_} {}
  Input& operator=(Input&&) = delete;
  ~Input() {
    if (file_ >= 0) ::close(file_);
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `bytes` from `offset` on and returns how many there were: fewer than asked for only at the end. Throws FileError.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
    if (offset >= size_) return 0;
    const std::span<std::byte> wanted = bytes.first(std::min<std::uint64_t>(bytes.size(), size_ - offset));
    if (file_ < 0) {
      std::ranges::copy(memory_.subspan(offset, wanted.size()), wanted.begin());
      return wanted.size();
    }
    for (std::size_t done = 0; done < wanted.size();) {
      const ssize_t count = ::pread(file_, wanted.data() + done, wanted.size() - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("read", errno);
      if (count == 0)
        throw FileError{text(name_, ": expected ", size_, " bytes, found ", offset + done, ": it shrank while it was read. Try again.")};
      done += as_size(count);
    }
    return wanted.size();
  }

 private:
  [[noreturn]] void fail(const char* verb, int reason) const {
    throw FileError{text(name_, ": cannot ", verb, " it: ", std::generic_category().message(reason),
                         ". Check that the file is there, and that this user may read it.")};
  }

  std::string name_;
  int file_ = -1;  // -1: the bytes are those of memory_
  std::span<const std::byte> memory_;
  std::uint64_t size_ = 0;
};

/// Reads an Input from its beginning on.
class InputBytes {
 public:
  explicit InputBytes(const Input& input) : input_{&input} {}

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes) {
    const std::size_t count = input_->read_at(offset_, bytes);
    offset_ += count;
    return count;
  }

 private:
  const Input* input_;
  std::uint64_t offset_ = 0;
};

}  // namespace pdp::data
