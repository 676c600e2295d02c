#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/gzip.hpp>
#include <pdp/data/input.hpp>

namespace pdp::data {

/// The contents of an IDX file of unsigned bytes. IDX is LeCun's format of the MNIST files (https://yann.lecun.com/exdb/mnist).
struct Idx {
  std::vector<Index> extents;        // 1 to 4 extents, outermost first; in MNIST, the first is the number of samples
  std::vector<std::uint8_t> values;  // row-major
};

/// An IDX file open for reading, plain or compressed by gzip (detected from the contents, not the name). The constructor reads the header,
/// so that the caller can reject a file by its extents before any data is decompressed.
class IdxFile {
 public:
  /// Throws FileError if the file cannot be read or its header is invalid.
  explicit IdxFile(const std::filesystem::path& path);
  explicit IdxFile(Input input);

  [[nodiscard]] const std::string& name() const { return input_.name(); }
  [[nodiscard]] const std::vector<Index>& extents() const { return extents_; }

  /// Reads the values. May be called once. Throws FileError if there are too few or too many bytes.
  ///
  /// Memory grows with the data that is really present, and never beyond what the header announces. A compressed file that announces more
  /// than 64 MiB is decompressed twice, the first time only to count its bytes.
  [[nodiscard]] std::vector<std::uint8_t> values();

 private:
  [[nodiscard]] std::size_t header_bytes() const { return 4 + 4 * extents_.size(); }

  /// Throws FileError if the file does not have the size that its header announces. Allocates no memory for the values.
  void check_size() const;
  void resize(std::vector<std::uint8_t>& values, std::size_t size) const;
  [[noreturn]] void wrong_size(std::string_view found) const;

  Input input_;
  UnpackedBytes from_;
  std::vector<Index> extents_;
  std::size_t expected_;
};

/// Reads a whole IDX file. Throws FileError as IdxFile does.
Idx read_idx(Input input);
Idx read_idx(const std::filesystem::path& path);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/idx.hpp>
#endif
