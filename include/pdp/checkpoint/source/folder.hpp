#pragma once

/// Definitions for pdp/checkpoint/folder.hpp; see pdp/core/separate_compilation.hpp.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/data/replace_file.hpp>

namespace pdp::checkpoint {

namespace detail {

constexpr std::string_view step_prefix = "step-", unfinished_prefix = ".step-", link_name = "latest";

[[noreturn]] PDP_INLINE void fail_with(const std::filesystem::path& path, std::string_view action, int reason) {
  const bool is_full = reason == ENOSPC || reason == EDQUOT;
  throw FileError{text(path.string(), ": cannot ", action, ": ", std::generic_category().message(reason), ". ",
                       is_full ? "Free some space or raise the limit." : "Choose a folder that this user may write to.")};
}

/// Renames a file or a folder. Both paths are in the same folder.
PDP_INLINE void rename_to(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_with(to, "give the checkpoint its name", errno);
}

/// Syncs the names in a folder. `descriptor`: the open folder. Returns false, and sets errno, if that has failed.
PDP_INLINE bool sync_names(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL;  // EINVAL: the file system cannot sync folders
}

/// Creates a folder, and those around it. They remain after a power cut.
PDP_INLINE void create_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> around;  // the folders that get new names
  for (auto each = std::filesystem::absolute(folder, error); !error && !std::filesystem::exists(each, error); each = each.parent_path())
    if (each.has_filename()) around.push_back(each.parent_path());
  std::filesystem::create_directories(folder, error);
  if (error) fail_with(folder, "create the folder", error.value());
  for (const std::filesystem::path& each : around) {
    const int opened = ::open(each.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) continue;  // this user may not list it
    const bool synced = sync_names(opened);
    const int reason = errno;
    ::close(opened);
    if (!synced) fail_with(each, "write the folder to the disk", reason);
  }
}

/// Publishes checkpoints that were complete, but had not got their names when their job ended. Removes others that are not complete.
PDP_INLINE void tidy_up(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(unfinished_prefix)) continue;  // the lock says that no other job writes it
    std::error_code ignored;
    const std::filesystem::path published = folder / name.substr(1, name.rfind('.') - 1);
    const bool is_complete = name.ends_with(".new") && std::filesystem::exists(entry.path() / Manifest::file_name, ignored);
    if (is_complete && !std::filesystem::exists(published, ignored))
      std::filesystem::rename(entry.path(), published, ignored);
    else
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

/// Renames a checkpoint, so that it is not found. Replaces an earlier one of the same step that was set aside.
PDP_INLINE void set_aside(const std::filesystem::path& path) {
  const std::filesystem::path aside = path.parent_path() / text(path.filename().string(), ".aside");
  std::error_code ignored;
  std::filesystem::remove_all(aside, ignored);
  std::filesystem::rename(path, aside, ignored);
}

/// Removes a checkpoint. It loses its name first, so that no reader sees a part of it.
PDP_INLINE void remove_checkpoint(const std::filesystem::path& path) {
  const std::filesystem::path unfinished = path.parent_path() / text('.', path.filename().string(), ".old");
  std::error_code ignored;
  std::filesystem::remove_all(unfinished, ignored);
  if (std::rename(path.c_str(), unfinished.c_str()) == 0) std::filesystem::remove_all(unfinished, ignored);
}

}  // namespace detail

PDP_INLINE std::string name_of_step(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return text(detail::step_prefix, std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'), digits);
}

PDP_INLINE std::vector<FoundCheckpoint> checkpoints_in(const std::filesystem::path& folder) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  std::filesystem::directory_iterator entry{folder, error};
  for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::int64_t step = 0;
    const char *first = name.c_str() + std::min(name.size(), detail::step_prefix.size()), *last = name.c_str() + name.size();
    if (!name.starts_with(detail::step_prefix) || std::from_chars(first, last, step).ptr != last || name != name_of_step(step)) continue;
    if (std::filesystem::exists(entry->path() / Manifest::file_name)) found.push_back({step, entry->path()});
  }
  if (error && error != std::errc::no_such_file_or_directory) detail::fail_with(folder, "read the folder", error.value());
  std::ranges::sort(found, {}, &FoundCheckpoint::step);
  return found;
}

PDP_INLINE bool has_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path / Manifest::file_name, ignored) || !checkpoints_in(path).empty();
}

PDP_INLINE std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path / Manifest::file_name, ignored)) return path;
  const auto all = checkpoints_in(path);
  if (all.empty())
    throw FileError{text(path.string(), ": expected a checkpoint (a folder with the file ", Manifest::file_name,
                         ") or a folder with checkpoints (step-000500 and so on), found neither. Check the path.")};
  return all.back().path;
}

PDP_INLINE FolderLock::FolderLock(const std::filesystem::path& folder) : path_{folder} {
  open_standard_streams();  // otherwise the folder might get descriptor 0, 1 or 2
  detail::create_folders(folder);
  if (std::filesystem::exists(folder / Manifest::file_name))
    throw FileError{text(folder.string(), ": expected a folder for checkpoints, found a checkpoint. Give the folder around it.")};
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) detail::fail_with(folder, "open the folder", errno);
  lock_ = ::openat(folder_, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);  // NFS locks only files that are open for writing
  const int reason = errno;
  const bool is_taken = lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (lock_ >= 0 && !is_taken) return;  // locked, or the file system has no locks
  const int opened = std::exchange(lock_, -1);
  if (opened >= 0) ::close(opened);
  ::close(folder_);
  if (!is_taken) detail::fail_with(folder, "write to the folder", reason);
  throw FileError{text(folder.string(),
                       ": another job, or a fit() of this one, writes its checkpoints to this folder. Give each job a folder of its own.")};
}

PDP_INLINE FolderLock::~FolderLock() {
  ::close(lock_);
  ::close(folder_);
}

PDP_INLINE void FolderLock::sync() const {
  if (!detail::sync_names(folder_)) detail::fail_with(path_, "write the folder to the disk", errno);
}

PDP_INLINE NewCheckpoint::NewCheckpoint(const FolderLock& in, std::int64_t step)
    : in_{&in}, step_{step}, folder_{in.path() / text('.', name_of_step(step), ".new")}, name_{in.path() / name_of_step(step)} {
  detail::tidy_up(in.path());
  if (::mkdir(folder_.c_str(), 0777) != 0) detail::fail_with(folder_, "create the folder of a checkpoint", errno);
}

PDP_INLINE NewCheckpoint::~NewCheckpoint() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

PDP_INLINE std::filesystem::path NewCheckpoint::publish(const Manifest& manifest) {
  const std::string words = encode(manifest);
  static_cast<void>(decode(words, (folder_ / Manifest::file_name).string()));  // for example, ranks may have written the same piece
  data::ReplaceFile file{folder_ / Manifest::file_name};
  file.write(std::as_bytes(std::span{words}));
  file.commit();  // also syncs the entries of the other files
  // An older checkpoint of the same step takes the temporary name, and the destructor removes it.
  const bool is_there = std::filesystem::exists(name_);
  if (!is_there || ::renameat2(AT_FDCWD, folder_.c_str(), AT_FDCWD, name_.c_str(), RENAME_EXCHANGE) != 0) {
    if (is_there) detail::remove_checkpoint(name_);  // the file system cannot exchange names
    detail::rename_to(folder_, name_);
    folder_.clear();
  }
  for (const FoundCheckpoint& other : checkpoints_in(in_->path()))
    if (other.step > step_) detail::set_aside(other.path);
  in_->sync();

  const std::filesystem::path link = in_->path() / detail::link_name, made = in_->path() / ".latest.new";
  std::error_code error;
  std::filesystem::remove(made, error);
  std::filesystem::create_symlink(name_.filename(), made, error);
  if (!error) std::filesystem::rename(made, link, error);  // for people; find_checkpoint() does not need it
  return name_;
}

PDP_INLINE void remove_old_checkpoints(const FolderLock& in, int keep) {
  const auto all = checkpoints_in(in.path());
  for (std::size_t i = 0; i + as_size(keep) < all.size(); ++i) detail::remove_checkpoint(all[i].path);
}

}  // namespace pdp::checkpoint
