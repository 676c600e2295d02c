#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <pdp/comm/join/membership.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

/// The system calls of a FileStore. A test substitutes others.
struct FileCalls {
  static int stat(const char* path, struct ::stat* about) { return ::stat(path, about); }
  static int open(const char* path, int flags) { return ::open(path, flags, S_IRUSR | S_IWUSR); }
  static int flock(int file, int operation) { return ::flock(file, operation); }
  static ssize_t read(int file, void* bytes, std::size_t size) { return ::read(file, bytes, size); }
  static ssize_t write(int file, const void* bytes, std::size_t size) { return ::write(file, bytes, size); }
  static int close(int file) { return ::close(file); }
  static int rename(const char* from, const char* to) { return ::rename(from, to); }
};

/// The job's store as a folder that all ranks see, on one machine or on a shared file system, with a file for each key.
///
/// The folder must be the job's own: entries of an earlier job would be taken for entries of this one. The store removes no files. Only the
/// job's user can read or write the entries, and a process that can read them may join the job. The folder does not show the address of a
/// rank: comm::Tcp assumes that all ranks are on one machine, unless StoreView::reached_at gives the address of each.
///
/// A shared file system can fail for a moment: a stale handle, a server that restarts, a network that is down. A call with such an error
/// (see may_pass) is repeated until the deadline. Then the error is thrown.
template <class Calls>
class BasicFileStore {
 public:
  /// Makes the folder if it does not exist. Throws ConfigError if that fails, or if other users could write to it.
  ///
  /// `membership`: what the ranks prove to each other, in addition to their access to the folder. `deadline`: of the start. Until then a
  /// call waits for another rank to release the folder's lock, and for a temporary error to pass. `least`: the shortest time that a call
  /// waits for these, also after the deadline.
  explicit BasicFileStore(std::filesystem::path folder, comm::Membership membership = {}, comm::TimePoint deadline = {},
                          comm::Duration least = std::chrono::seconds{5})
      : folder_{std::move(folder)}, membership_{std::move(membership)}, deadline_{deadline}, least_{least} {
    std::error_code ignored;
    if (folder_.has_parent_path()) std::filesystem::create_directories(folder_.parent_path(), ignored);
    const auto refuse = [&](std::string_view why) {
      throw ConfigError{text("cannot use ", folder_.string(), " for the job's store: ", why)};
    };
    struct stat about {};
    const int error = repeat(until(), [&] {
      ::mkdir(folder_.c_str(), S_IRWXU);
      return Calls::stat(folder_.c_str(), &about) == 0 ? 0 : errno;
    });
    if (error != 0 || !S_ISDIR(about.st_mode))
      refuse(text(error != 0 ? std::strerror(error) : "it is not a folder", "; it must be a folder that all ranks can write to"));
    if (about.st_uid != ::geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      refuse("other users can write to that folder, and so could join the job; it must be this user's own (chmod 700)");
  }

  [[nodiscard]] const comm::Membership& membership() const { return membership_; }

  /// Returns a file name for any word: letters and digits as they are, other bytes as % and two hexadecimal digits.
  [[nodiscard]] static std::string file_name(std::string_view word) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string name;
    for (const char letter : word) {
      const auto byte = static_cast<unsigned char>(letter);
      if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9'))
        name += letter;
      else
        name.append({'%', digits[byte / 16], digits[byte % 16]});
    }
    return name;
  }

  // The calls of comm::Store.
  void set(std::string_view key, std::string_view value) {
    check(until());
    const Lock lock{*this, until()};
    const std::optional<std::string> there = read(key, until());
    if (!there) return write(key, value, until());
    if (*there != value)
      throw ConfigError{text("'", key, "' is in the job's store in ", folder_.string(),
                             " already, with another value; either two processes have the same rank, or another job has used this folder")};
  }

  std::string wait(std::string_view key, comm::TimePoint deadline) {
    for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, longest_pause)) {
      check(deadline);
      if (std::optional<std::string> value = read(key, deadline)) return *std::move(value);
      const comm::TimePoint now = comm::Clock::now();
      if (now >= deadline)
        throw Timeout{
            text("'", key, "' was not set in the job's store in ", folder_.string(), " before the deadline for the start (PDP_TIMEOUT)")};
      std::this_thread::sleep_until(std::min(deadline, now + pause));
    }
  }

  std::optional<std::string> get(std::string_view key) {
    check(until());
    return read(key, until());
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    check(until());
    const Lock lock{*this, until()};
    const std::int64_t sum = added(key, read(key, until()).value_or("0"), amount);
    write(key, std::to_string(sum), until());
    return sum;
  }

  /// Tells all ranks why the job cannot start. Does not wait until the deadline of the start: if another rank holds the folder's lock for
  /// longer than time_to_tell, the others are not told.
  void fail(const comm::Failure& failure) {
    const comm::TimePoint soon = comm::Clock::now() + time_to_tell;
    try {
      const Lock lock{*this, soon};
      if (!read(failure_key, soon)) write(failure_key, comm::encode(failure), soon);
    } catch (const Timeout&) {
    }
  }

 private:
  static constexpr std::chrono::milliseconds longest_pause{50};
  static constexpr std::string_view failure_key = "failure";  // why the job cannot start

  void check(comm::TimePoint deadline) {
    if (const std::optional<std::string> failure = read(failure_key, deadline)) comm::decode_failure(*failure).raise();
  }

  [[nodiscard]] comm::TimePoint until() const { return std::max<comm::TimePoint>(deadline_, comm::Clock::now() + least_); }

  /// Returns whether a call that failed with this error may succeed if it is repeated. Network file systems (NFS, Lustre, SMB, those in
  /// user space) report a server that is away for a while as EIO, or by an error of their connection to it.
  static bool may_pass(int error) {
    constexpr int passing[]{ESTALE,     EINTR,        EAGAIN,    EBUSY,       EIO,      EREMOTEIO,    ETIMEDOUT,
                            ENOLCK,     ENOTCONN,     ESHUTDOWN, EHOSTDOWN,   EPIPE,    EHOSTUNREACH, ECONNREFUSED,
                            ECONNRESET, ECONNABORTED, ENETDOWN,  ENETUNREACH, ENETRESET};
    return std::ranges::find(passing, error) != std::end(passing);
  }

  /// Calls `attempt`, which returns 0 or an error number, until it succeeds, fails for good, or the deadline has passed. Returns the last
  /// result.
  static int repeat(comm::TimePoint deadline, const auto& attempt) {
    for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, longest_pause)) {
      const int error = attempt();
      if (!may_pass(error) || comm::Clock::now() >= deadline) return error;
      std::this_thread::sleep_for(pause);
    }
  }

  /// The lock of the folder. One rank holds it at a time; the system releases it if that rank dies.
  class Lock {
   public:
    Lock(BasicFileStore& store, comm::TimePoint deadline) {
      const int error = repeat(deadline, [&] {
        if (!file_) file_ = comm::Descriptor{Calls::open((store.folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK)};
        if (file_ && Calls::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return 0;
        const int reason = errno;
        if (reason != EWOULDBLOCK) file_.close();  // the handle may be stale
        return reason;
      });
      if (error == EWOULDBLOCK)
        throw Timeout{text("the job's store in ", store.folder_.string(),
                           " stays locked beyond the deadline for the start (PDP_TIMEOUT); a rank that holds it may be stopped")};
      if (error != 0) store.refuse("lock", "lock", error);
    }

   private:
    comm::Descriptor file_;
  };

  /// Returns the value of a key, or nothing if it is not set. Reads a file again if it is replaced meanwhile.
  std::optional<std::string> read(std::string_view key, comm::TimePoint deadline) {
    std::string value;
    const int error = repeat(deadline, [&] {
      value.clear();
      const comm::Descriptor file{Calls::open(path(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
      if (!file) return errno;
      char bytes[4096];
      while (true) {
        const ssize_t count = Calls::read(file.get(), bytes, sizeof bytes);
        if (count < 0) return errno;
        if (count == 0) return 0;
        value.append(bytes, as_size(count));
      }
    });
    if (error == ENOENT) return std::nullopt;
    if (error != 0) refuse("read", key, error);
    return value;
  }

  /// Writes a file beside the final one and renames it, so that a reader finds all of a value or none of it. Call it with the lock held.
  void write(std::string_view key, std::string_view value, comm::TimePoint deadline) {
    const std::filesystem::path beside = folder_ / "new";
    const int error = repeat(deadline, [&] {
      if (const int reason = write_file(beside, value); reason != 0) return reason;
      if (Calls::rename(beside.c_str(), path(key).c_str()) == 0) return 0;
      // If the answer of a server is lost, the rename is sent again and finds no file. Write and rename once more.
      return errno == ENOENT ? ESTALE : errno;
    });
    if (error != 0) refuse("write", key, error);
  }

  static int write_file(const std::filesystem::path& path, std::string_view bytes) {
    const int file = Calls::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return errno;
    int error = 0;
    while (!bytes.empty() && error == 0) {
      const ssize_t count = Calls::write(file, bytes.data(), bytes.size());
      if (count < 0)
        error = errno;
      else
        bytes.remove_prefix(as_size(count));
    }
    // On close, a network file system sends the bytes and reports what it could not write. Only then may the caller rename the file, which
    // shows the value to other hosts.
    if (Calls::close(file) != 0 && error == 0) error = errno;
    return error;
  }

  [[nodiscard]] std::filesystem::path path(std::string_view key) const { return folder_ / ("key-" + file_name(key)); }

  [[noreturn]] void refuse(const char* what, std::string_view key, int error) const {
    throw ConfigError{
        text("the job's store in ", folder_.string(), " cannot ", what, " '", key, "': ", comm::describe_system_error(error))};
  }

  std::filesystem::path folder_;
  comm::Membership membership_;
  comm::TimePoint deadline_;
  comm::Duration least_;
};

using FileStore = BasicFileStore<FileCalls>;

static_assert(comm::Store<FileStore>);

}  // namespace pdp::launch
