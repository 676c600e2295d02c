#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::data {

/// Writes a file beside `path` and puts it there by commit(), so that a reader, or the next run after a crash, finds the old file or the
/// new one, never a mixture. Without commit() the destructor takes the new one away again. A symbolic link at `path` is replaced, not
/// followed.
///
/// Until commit() the new file has no name, so a process that is killed leaves nothing behind. On file systems without such files (NFS) it
/// is `path`.HOST.PID.NUMBER.new, and the next process that writes the same path removes those of writers that have ended. A writer that is
/// alive holds a lock (flock) on its file.
class ReplaceFile {
 public:
  /// Throws FileError where nothing can be written beside `path`, or `path` is a directory or a device.
  explicit ReplaceFile(std::filesystem::path path);
  ReplaceFile(const ReplaceFile&) = delete;
  ReplaceFile& operator=(const ReplaceFile&) = delete;
  ~ReplaceFile();

  /// Appends. Throws FileError, e.g. on a full disk.
  void write(std::span<const std::byte> bytes);

  /// Puts the file in its place, on the disk. After a FileError the old file is there as it was (except where only the last step failed,
  /// the sync of the folder: then the new one is there whole, but might not survive a power cut).
  void commit();

 private:
  class NewFile;
  std::unique_ptr<NewFile> file_;
};

/// Throws FileError if a ReplaceFile could not write there now: for a program that is to find out before it computes what it will write.
void check_writable(const std::filesystem::path& path);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/replace_file.hpp>
#endif
