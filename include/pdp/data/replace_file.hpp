#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <pdp/core/error.hpp>

namespace pdp::data {

/// Writes a file beside `path` and puts it there by commit(), so that a reader, or the next run after a crash, finds the old file or the
/// new one, never a mixture. Without commit() the destructor takes the new one away again. A symbolic link at `path` is replaced, not
/// followed.
class ReplaceFile {
 public:
  /// Throws FileError where nothing can be written beside `path`, or `path` is a directory or a device.
  explicit ReplaceFile(std::filesystem::path path) : path_{std::move(path)} {
    std::error_code ignored;
    const auto there = std::filesystem::status(path_, ignored);
    if (path_.filename().empty() || (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)))
      throw FileError{
          text(path_.string(), ": expected the path of a file to write, found a directory or a device. Give a file name in a folder.")};
    const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path{"."};
    folder_ = Descriptor{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (folder_.get() < 0) fail("open its folder", errno);
    create();
  }

  ReplaceFile(const ReplaceFile&) = delete;
  ReplaceFile& operator=(const ReplaceFile&) = delete;
  ~ReplaceFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  /// Appends. Throws FileError, e.g. on a full disk.
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write it", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  /// Puts the file in its place, on the disk. After a FileError the old file is there as it was (except where only the last step failed,
  /// the sync of the folder: then the new one is there whole, but might not survive a power cut).
  void commit() {
    if (::fsync(file_.get()) != 0) fail("write it to the disk", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put the new file in its place", errno);
    temporary_.clear();
    if (::fsync(folder_.get()) != 0 && errno != EINVAL) fail("write its folder to the disk", errno);  // EINVAL: a file system without it
  }

 private:
  class Descriptor {
   public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_{number} {}
    Descriptor(Descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(number_, other.number_);
      return *this;
    }
    ~Descriptor() {
      if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int get() const { return number_; }

   private:
    int number_ = -1;
  };

  /// Creates the temporary under a name that nobody else has: another thread or process may be saving to the same path.
  void create() {
    for (int attempt = 0; file_.get() < 0; ++attempt) {
      std::string name = text(path_.string(), ".", ::getpid(), ".", attempt, ".new");
      file_ = Descriptor{::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};  // less the umask, as for any new file
      if (file_.get() >= 0)
        temporary_ = std::move(name);
      else if (errno != EEXIST || attempt == 1000)
        fail("create a file beside it", errno);
    }
  }

  [[noreturn]] void fail(const char* action, int reason) const {
    const char* advice = "Choose another path.";
    if (reason == ENOENT || reason == ENOTDIR) advice = "Create the folder first, or choose another path.";
    if (reason == EACCES || reason == EPERM || reason == EROFS) advice = "Choose a folder that this user may write to.";
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) advice = "Free some space or raise the limit, or choose another path.";
    throw FileError{text(path_.string(), ": cannot ", action, ": ", std::generic_category().message(reason), ". ", advice)};
  }

  std::filesystem::path path_;
  std::string temporary_;  // empty when there is none to take away
  Descriptor folder_;
  Descriptor file_;
};

}  // namespace pdp::data
