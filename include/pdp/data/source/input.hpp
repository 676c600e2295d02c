#pragma once

/// Definitions for pdp/data/input.hpp; see pdp/core/separate_compilation.hpp.

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
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

PDP_INLINE Input::Input(const std::filesystem::path& path) : name_{path.string()} {
  do file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // O_NONBLOCK: does not wait for the writer of a pipe
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

PDP_INLINE Input::Input(std::span<const std::byte> bytes, std::string name) : name_{std::move(name)}, memory_{bytes}, size_{bytes.size()} {}

PDP_INLINE Input::Input(Input&& other) noexcept
    : name_{std::move(other.name_)}, file_{std::exchange(other.file_, -1)}, memory_{other.memory_}, size_{other.size_} {}
PDP_INLINE Input::~Input() {
  if (file_ >= 0) ::close(file_);
}

PDP_INLINE std::size_t Input::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
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

PDP_INLINE void Input::fail(const char* verb, int reason) const {
  throw FileError{text(name_, ": cannot ", verb, " it: ", std::generic_category().message(reason),
                       ". Check that the file is there, and that this user may read it.")};
}

PDP_INLINE std::size_t InputBytes::read(std::span<std::byte> bytes) {
  const std::size_t count = input_->read_at(offset_, bytes);
  offset_ += count;
  return count;
}

}  // namespace pdp::data
