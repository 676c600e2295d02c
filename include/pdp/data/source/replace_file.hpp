#pragma once

/// Definitions for pdp/data/replace_file.hpp; see pdp/core/separate_compilation.hpp.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/data/replace_file.hpp>

namespace pdp::data {

class ReplaceFile::NewFile {
 public:
  explicit NewFile(std::filesystem::path path) : path_{std::move(path)} {
    std::error_code ignored;
    const auto there = std::filesystem::status(path_, ignored);
    if (path_.filename().empty() || (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)))
      throw FileError{
          text(path_.string(), ": expected the path of a file to write, found a directory or a device. Give a file name in a folder.")};
    open_standard_streams();  // otherwise the new file might get descriptor 0, 1 or 2
    report_file_size_limit();
    folder_path_ = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path{"."};
    folder_ = Descriptor{::open(folder_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (folder_.get() < 0) fail("open its folder", errno);
    if (!create_without_name()) create();
    if (Searched::must_search(folder_.get(), path_) && remove_leftovers()) Searched::found_none(folder_.get(), path_);
  }

  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write it", errno);
      bytes = bytes.subspan(as_size(count));
      written_ += count;
    }
    // Starts to write large files to the disk while the next bytes are prepared. commit() waits for that, and reports errors.
    constexpr off_t least = 8 << 20;
    if (written_ - begun_ < least) return;
    ::sync_file_range(file_.get(), begun_, written_ - begun_, SYNC_FILE_RANGE_WRITE);
    begun_ = written_;
  }

  void commit() {
    if (::fsync(file_.get()) != 0) fail("write it to the disk", errno);
    if (temporary_.empty()) give_name();
    if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), path_.filename().c_str()) != 0)
      fail("put the new file in its place", errno);
    temporary_.clear();
    // EINVAL: the file system cannot sync folders.
    if (::fsync(folder_.get()) != 0 && errno != EINVAL) fail("write its folder to the disk", errno);
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

  /// The paths beside which this process has found no file of another writer. Listing a folder of a million files takes seconds on a
  /// network file system, so it is not repeated for each save.
  class Searched {
   public:
    static bool must_search(int folder, const std::filesystem::path& path) {
      const std::scoped_lock lock{mutex};
      if (process != ::getpid()) paths.clear();  // the process has inherited the list by fork
      return !paths.contains(key(folder, path));
    }
    static void found_none(int folder, const std::filesystem::path& path) {
      constexpr std::size_t most = 1000;
      const std::scoped_lock lock{mutex};
      if (paths.size() == most) paths.clear();
      process = ::getpid();
      paths.insert(key(folder, path));
    }

   private:
    using Key = std::tuple<dev_t, ino_t, std::string>;
    static Key key(int folder, const std::filesystem::path& path) {
      struct stat about {};
      ::fstat(folder, &about);
      return {about.st_dev, about.st_ino, path.string()};  // with the path, as a new folder may get the inode number of a removed one
    }

    static inline std::mutex mutex;
    static inline std::set<Key> paths;
    static inline pid_t process = 0;
  };

  static constexpr int most_attempts = 1000;
  static constexpr std::string_view ending = ".new";

  /// Returns the name of this host as used in the names of temporary files.
  static std::string host_name() {
    std::array<char, 33> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
  }
  [[nodiscard]] std::string temporary_name(int attempt) const {
    return text(path_.filename().string(), '.', host_name(), '.', ::getpid(), '.', attempt, ending);
  }

  /// Opens an unnamed file. Returns false if the file system has none, or /proc is not available.
  bool create_without_name() {
    file_ = Descriptor{::open(folder_path_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)};  // the umask applies, as for any new file
    if (file_.get() < 0 || ::access(own_path().c_str(), F_OK) != 0) return false;
    if (::faccessat(folder_.get(), temporary_name(0).c_str(), F_OK, 0) != 0 && errno == ENAMETOOLONG)
      fail("create a file beside it", errno);
    ::flock(file_.get(), LOCK_EX | LOCK_NB);
    return true;
  }
  [[nodiscard]] std::string own_path() const { return text("/proc/self/fd/", file_.get()); }

  /// Links the unnamed file under a name that no other writer uses.
  void give_name() {
    for (int attempt = 0; temporary_.empty(); ++attempt) {
      std::string name = temporary_name(attempt);
      if (::linkat(AT_FDCWD, own_path().c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0)
        temporary_ = std::move(name);
      else if (errno != EEXIST || attempt == most_attempts)
        fail("create a file beside it", errno);
    }
  }

  /// Creates the temporary file under a name that no other writer uses: another thread or process may be saving to the same path.
  void create() {
    for (int attempt = 0; temporary_.empty(); ++attempt) {
      std::string name = temporary_name(attempt);
      file_ = Descriptor{::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
      if (file_.get() < 0) {
        if (errno != EEXIST || attempt == most_attempts) fail("create a file beside it", errno);
        continue;
      }
      // Between creation and lock, another writer may have locked or removed the file as a leftover.
      const bool is_taken = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
      struct stat state {};
      if (!is_taken && ::fstat(file_.get(), &state) == 0 && state.st_nlink > 0) temporary_ = std::move(name);
    }
  }

  /// Removes the temporary files of writers of this path that ended before commit(). Returns whether no file of another writer remains.
  /// Some file systems lock within one host only, so a file of another host is removed only if it has not changed for an hour.
  [[nodiscard]] bool remove_leftovers() const {
    constexpr time_t long_ago = 3600;
    const std::string prefix = path_.filename().string() + '.', own_host = host_name();
    struct stat own {};
    if (::fstat(file_.get(), &own) != 0) return false;
    bool none_remains = true;
    std::error_code error;
    for (std::filesystem::directory_iterator entry{folder_path_, error}, end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const std::string_view host = host_in(name, prefix);
      if (host.empty() || name == temporary_) continue;
      const Descriptor left{::openat(folder_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
      struct stat state {};
      const bool is_left = left.get() >= 0 && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(left.get(), &state) == 0 &&
                           S_ISREG(state.st_mode) && state.st_nlink == 1;
      const bool is_removed =
          is_left && (host == own_host || own.st_mtime - state.st_mtime > long_ago) && ::unlinkat(folder_.get(), name.c_str(), 0) == 0;
      none_remains = none_remains && is_removed;
    }
    return none_remains && !error;
  }
  /// Returns HOST of a name `prefix`HOST.PID.NUMBER.new, or an empty view if the name has another form.
  static std::string_view host_in(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix) || !name.ends_with(ending) || name.size() < prefix.size() + ending.size()) return {};
    name = name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
    for (int field = 0; field < 2; ++field) {
      const std::size_t dot = name.rfind('.');
      if (dot == std::string_view::npos || dot + 1 == name.size()) return {};
      if (!std::ranges::all_of(name.substr(dot + 1), [](char letter) { return letter >= '0' && letter <= '9'; })) return {};
      name = name.substr(0, dot);
    }
    return name;
  }

  [[noreturn]] void fail(const char* action, int reason) const {
    const char* advice = "Choose another path.";
    if (reason == ENOENT || reason == ENOTDIR) advice = "Create the folder first, or choose another path.";
    if (reason == EACCES || reason == EPERM || reason == EROFS) advice = "Choose a folder that this user may write to.";
    if (reason == ENOSPC || reason == EDQUOT) advice = "Free some space or raise the limit, or choose another path.";
    if (reason == EFBIG) advice = "Raise the limit of a file's size (ulimit -f), or choose another path.";
    throw FileError{text(path_.string(), ": cannot ", action, ": ", std::generic_category().message(reason), ". ", advice)};
  }

  std::filesystem::path path_;
  std::filesystem::path folder_path_;
  std::string temporary_;  // name of the new file in the folder; empty while it has none
  Descriptor folder_;
  Descriptor file_;
  off_t written_ = 0, begun_ = 0;  // bytes of the file that have been written; whose way to the disk has begun
};

PDP_INLINE ReplaceFile::ReplaceFile(std::filesystem::path path) : file_{std::make_unique<NewFile>(std::move(path))} {}
PDP_INLINE ReplaceFile::~ReplaceFile() = default;
PDP_INLINE void ReplaceFile::write(std::span<const std::byte> bytes) { file_->write(bytes); }
PDP_INLINE void ReplaceFile::commit() { file_->commit(); }

PDP_INLINE void check_writable(const std::filesystem::path& path) { const ReplaceFile never_committed{path}; }

}  // namespace pdp::data
