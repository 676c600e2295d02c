#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::data {

/// Writes a new file, which commit() moves to `path` atomically. A reader, or the next run after a crash, finds the old file or the new
/// one, never a mixture. Without commit() the destructor discards the new file. A symbolic link at `path` is replaced, not followed.
///
/// Until commit() the new file has no name, so a process that is killed leaves nothing behind. On file systems without unnamed files (NFS)
/// its name is `path`.HOST.PID.NUMBER.new. The next process that writes the same path removes such files if their writers have ended. A
/// live writer holds a lock (flock) on its file.
class ReplaceFile {
 public:
  /// Throws FileError if no file can be created beside `path`, or `path` is a directory or a device.
  explicit ReplaceFile(std::filesystem::path path);
  ReplaceFile(const ReplaceFile&) = delete;
  ReplaceFile& operator=(const ReplaceFile&) = delete;
  ~ReplaceFile();

  /// Appends bytes. Throws FileError if that fails, for example on a full disk.
  void write(std::span<const std::byte> bytes);

  /// Flushes the file to disk (fsync), then moves it to `path`. If it throws FileError, the old file is unchanged, with one exception: if
  /// only the final sync of the folder failed, the new file is in place and complete, but might not survive a power cut.
  void commit();

 private:
  class NewFile;
  std::unique_ptr<NewFile> file_;
};

/// Throws FileError if a ReplaceFile for `path` could not be created now. Call this before a long computation, so that a path that cannot
/// be written fails early.
void check_writable(const std::filesystem::path& path);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/replace_file.hpp>
#endif
