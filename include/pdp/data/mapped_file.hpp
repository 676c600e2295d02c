#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// A file that is mapped read-only into memory. Pages are read from the disk when they are first accessed, and the system drops them if
/// memory is short. So the file may be larger than memory.
///
/// If another process truncates the file, access to a page behind its new end raises SIGBUS, which ends the program. check_size() turns
/// this into an error, unless the file shrinks between the check and the access.
class MappedFile {
 public:
  /// Maps the whole file. The bytes of an Input in memory are used unchanged. Throws FileError if the system cannot map the file.
  explicit MappedFile(Input input);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const Input& input() const { return input_; }
  [[nodiscard]] const std::string& name() const { return input_.name(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// Throws FileError if the file has become smaller since it was opened.
  void check_size() const;
  /// Asks the system to read a part of the file in the background, if it is not in memory.
  void prefetch(std::uint64_t offset, std::uint64_t size) const;

 private:
  Input input_;
  std::span<const std::byte> bytes_;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/mapped_file.hpp>
#endif
