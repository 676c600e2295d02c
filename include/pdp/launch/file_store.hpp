#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <pdp/comm/descriptor.hpp>
#include <pdp/comm/membership.hpp>
#include <pdp/comm/store.hpp>
#include <pdp/comm/system_limits.hpp>
#include <pdp/launch/store_protocol.hpp>

namespace pdp::launch {

/// The job's store as a folder that all ranks see, on one machine or on a file system they share: a file for each key. It must be a job's
/// own: what an earlier job has left there would be taken for this one's. Nothing is removed. Only its user can read or write what is in
/// it, and whoever can may join the job. It knows no way to a rank's machine: comm::Tcp takes the ranks to be on one, unless
/// StoreView::reached_at says the address of each.
class FileStore {
 public:
  /// Makes the folder if it is not there. Throws ConfigError where that cannot be, or other users could put something into it.
  /// `membership`: what its ranks prove to each other beyond what they have read in the folder. `deadline`: of the start; until then a rank
  /// waits for another one that holds the folder's lock.
  explicit FileStore(std::filesystem::path folder, comm::Membership membership = {}, comm::TimePoint deadline = {})
      : folder_{std::move(folder)}, membership_{std::move(membership)}, deadline_{deadline} {
    std::error_code error;
    if (folder_.has_parent_path()) std::filesystem::create_directories(folder_.parent_path(), error);
    ::mkdir(folder_.c_str(), S_IRWXU);
    if (!std::filesystem::is_directory(folder_, error))
      throw ConfigError{text("the job's store cannot be at ", folder_.string(), ": ", error ? error.message() : "it is not a folder",
                             "; it must be a folder that all ranks can write to")};
    struct stat about {};
    if (::stat(folder_.c_str(), &about) != 0 || about.st_uid != ::geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      throw ConfigError{text("the job's store cannot be at ", folder_.string(),
                             ": other users can write to that folder, and so could join the job; it must be this user's own (chmod 700)")};
  }

  [[nodiscard]] const comm::Membership& membership() const { return membership_; }

  /// A name of a file for every word: letters and digits as they are, all else by its number.
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

  void set(std::string_view key, std::string_view value) {
    check();
    const Lock lock{*this};
    const std::optional<std::string> there = read(key);
    if (!there) return write(key, value);
    if (*there != value)
      throw ConfigError{text("'", key, "' is in the job's store in ", folder_.string(),
                             " already, with another value; either two processes have the same rank, or another job has used this folder")};
  }

  std::string wait(std::string_view key, comm::TimePoint deadline) {
    for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, longest_pause)) {
      if (std::optional<std::string> value = get(key)) return *std::move(value);
      const comm::TimePoint now = comm::Clock::now();
      if (now >= deadline)
        throw Timeout{text("nobody has set '", key, "' in the job's store in ", folder_.string(),
                           " before the deadline for the start (PDP_TIMEOUT)")};
      std::this_thread::sleep_until(std::min(deadline, now + pause));
    }
  }

  std::optional<std::string> get(std::string_view key) {
    check();
    return read(key);
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    check();
    const Lock lock{*this};
    const std::int64_t sum = added(key, read(key).value_or("0"), amount);
    write(key, std::to_string(sum));
    return sum;
  }

  void fail(const comm::Failure& failure) {
    const Lock lock{*this};
    if (!read(failure_key)) write(failure_key, comm::encode(failure));
  }

 private:
  static constexpr std::chrono::milliseconds longest_pause{50};
  static constexpr std::chrono::seconds lock_time{5};         // after the deadline, for what a rank does at once
  static constexpr std::string_view failure_key = "failure";  // why the job cannot start

  void check() {
    if (const std::optional<std::string> failure = read(failure_key)) comm::decode_failure(*failure).raise();
  }

  std::optional<std::string> read(std::string_view key) {
    const comm::Descriptor file{::open(path(key).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file) refuse("read", key);
    std::string value;
    char bytes[4096];
    while (true) {
      const ssize_t count = ::read(file.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse("read", key);
      if (count == 0) return value;
      value.append(bytes, static_cast<std::size_t>(count));
    }
  }

  /// Held by one rank at a time; the system takes it from one that dies.
  class Lock {
   public:
    explicit Lock(FileStore& store) : file_{::open((store.folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
      if (!file_) store.refuse("lock", "lock");
      const comm::TimePoint until = std::max<comm::TimePoint>(store.deadline_, comm::Clock::now() + lock_time);
      while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) store.refuse("lock", "lock");
        if (comm::Clock::now() >= until)
          throw Timeout{text("the job's store in ", store.folder_.string(),
                             " stays locked until after the deadline for the start (PDP_TIMEOUT); a rank that holds it may be stopped")};
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
    }

   private:
    comm::Descriptor file_;
  };

  /// Beside, and then renamed: a reader finds all of a value or none of it. Under the lock.
  void write(std::string_view key, std::string_view value) {
    const std::filesystem::path beside = folder_ / "new";
    const comm::Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (!file) refuse("write", key);
    for (std::string_view left = value; !left.empty();) {
      const ssize_t written = ::write(file.get(), left.data(), left.size());
      if (written < 0 && errno != EINTR) refuse("write", key);
      if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::rename(beside.c_str(), path(key).c_str()) != 0) refuse("write", key);
  }

  [[nodiscard]] std::filesystem::path path(std::string_view key) const { return folder_ / ("key-" + file_name(key)); }

  [[noreturn]] void refuse(const char* what, std::string_view key) const {
    throw ConfigError{
        text("the job's store in ", folder_.string(), " cannot ", what, " '", key, "': ", comm::describe_system_error(errno))};
  }

  std::filesystem::path folder_;
  comm::Membership membership_;
  comm::TimePoint deadline_;
};

static_assert(comm::Store<FileStore>);

}  // namespace pdp::launch
