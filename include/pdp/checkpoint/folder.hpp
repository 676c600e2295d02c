#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/separate_compilation.hpp>

/// A folder with the checkpoints of a training:
///
///   run-7/step-000500/  manifest.json rank-00000.safetensors rank-00001.safetensors
///   run-7/step-001000/  ...
///   run-7/latest        a symbolic link to the newest one
///
/// A checkpoint is complete as soon as it has its name: all its files are written and synced in a folder with a temporary name, which is
/// then renamed.
namespace pdp::checkpoint {

/// Returns "step-000500".
[[nodiscard]] std::string name_of_step(std::int64_t step);

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
};
/// Returns the checkpoints in a folder, the oldest first. Empty if there is no such folder. Throws FileError if it cannot be read.
[[nodiscard]] std::vector<FoundCheckpoint> checkpoints_in(const std::filesystem::path& folder);

/// Returns whether a path is a checkpoint, or a folder that has one.
[[nodiscard]] bool has_checkpoint(const std::filesystem::path& path);

/// Returns the checkpoint that a path means: the path itself if it is one, else the newest one in the folder. Throws FileError if there is
/// none.
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// The right of this process to write checkpoints to a folder: a lock of the file .lock in it. While it exists, no other process or
/// FolderLock gets it.
class FolderLock {
 public:
  /// Creates the folder if it does not exist. Throws FileError if that fails, if another job writes checkpoints to it, or if the folder is
  /// itself a checkpoint.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(FolderLock&&) = delete;
  ~FolderLock();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes the folder's entries to the disk.
  void sync() const;

 private:
  std::filesystem::path path_;
  int folder_ = -1, lock_ = -1;  // descriptors
};

/// A checkpoint that is being written. The destructor removes it unless it was published.
class NewCheckpoint {
 public:
  /// Makes an empty folder with a temporary name, and removes what earlier jobs have left unfinished. Borrows the lock. Throws FileError.
  NewCheckpoint(const FolderLock& in, std::int64_t step);
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  ~NewCheckpoint();

  /// The folder in which the ranks write their files.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Checks and writes the manifest, gives the folder its name and points `latest` to it. Replaces a checkpoint of the same step. Sets
  /// later ones aside, as step-001000.aside: the training went back to an earlier one. Returns the path. Throws FileError, and publishes
  /// nothing, if the manifest is not valid.
  std::filesystem::path publish(const Manifest& manifest);

 private:
  const FolderLock* in_;
  std::int64_t step_;
  std::filesystem::path folder_, name_;
};

/// Removes all but the newest `keep` checkpoints.
void remove_old_checkpoints(const FolderLock& in, int keep);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/folder.hpp>
#endif
