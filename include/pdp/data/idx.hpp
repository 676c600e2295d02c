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

/// The contents of an IDX file of unsigned bytes: LeCun's format, in which MNIST comes (https://yann.lecun.com/exdb/mnist).
struct Idx {
  std::vector<Index> extents;        // 1 to 4, outermost first; in MNIST the first one counts the samples
  std::vector<std::uint8_t> values;  // row-major
};

/// An IDX file that is open for reading, plain or packed by gzip (told by its contents, not by its name). The header is read at once, so
/// that the caller can reject a file by its extents before anything is unpacked.
class IdxFile {
 public:
  /// Throws FileError if the file cannot be read or its header is not valid.
  explicit IdxFile(const std::filesystem::path& path);
  explicit IdxFile(Input input);

  [[nodiscard]] const std::string& name() const { return input_.name(); }
  [[nodiscard]] const std::vector<Index>& extents() const { return extents_; }

  /// Reads the values; to be called once. Throws FileError if there is a byte too few or too many. Memory grows with what is really there,
  /// and a packed file never takes more than its header announces: a large one is unpacked twice, the first time only to count its bytes.
  [[nodiscard]] std::vector<std::uint8_t> values();

 private:
  [[nodiscard]] std::size_t header_bytes() const { return 4 + 4 * extents_.size(); }

  /// Throws unless the file has the size that its header announces, without memory for it.
  void check_size() const;
  void resize(std::vector<std::uint8_t>& values, std::size_t size) const;
  [[noreturn]] void wrong_size(std::string_view found) const;

  Input input_;
  UnpackedBytes from_;
  std::vector<Index> extents_;
  std::size_t expected_;
};

/// Reads a whole IDX file (see IdxFile). Throws FileError.
Idx read_idx(Input input);
Idx read_idx(const std::filesystem::path& path);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/idx.hpp>
#endif
