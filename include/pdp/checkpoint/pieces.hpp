#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>

/// The files of a checkpoint. Each is a safetensors file with the pieces of tensors that one rank has written, in the order in which they
/// lie in the rank's memory.
namespace pdp::checkpoint {

/// A part of a tensor that this rank writes. Borrows the bytes, which are in host memory, row by row.
struct PartToWrite {
  StoredTensor tensor;
  Block block;
  std::span<const std::byte> bytes;
};

/// Returns the size in bytes, roughly, of the pieces into which a part of this size is cut. A reader reads and hashes whole pieces, so
/// small ones spare it bytes that it does not need. But each one takes a line of the manifest.
[[nodiscard]] constexpr std::size_t piece_bytes(std::size_t part) {
  return std::clamp(part / 32, std::size_t{64} << 10, std::size_t{2} << 20);
}

/// Writes a new file with these parts, and syncs it. Returns the manifest of this file alone. Throws FileError if the file cannot be
/// written.
[[nodiscard]] Manifest write_pieces(const std::filesystem::path& file, const std::vector<PartToWrite>& parts);

/// Returns the manifest of all ranks' files. `position`, `values`: of the whole. `parts`: the manifests of the files. Throws FileError if
/// the ranks describe a tensor differently.
[[nodiscard]] Manifest joined(const Position& position, const Values& values, const std::vector<Manifest>& parts);

/// A checkpoint that is open for reading.
class PieceReader {
 public:
  /// Reads and checks the manifest, and checks that the files that it names exist and have the right sizes. Throws FileError.
  explicit PieceReader(std::filesystem::path folder);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Returns the hash of manifest.json, by which ranks compare what they read.
  [[nodiscard]] const Hash& hash() const { return hash_; }

  using Place = std::function<std::span<std::byte>(const Block& block)>;
  using Visit = std::function<void(const Block& block, std::span<const std::byte> bytes)>;
  /// Reads each piece of a tensor that has elements of one of these blocks. `place` returns memory for a piece's bytes, or an empty span if
  /// it has none. Calls visit(block, bytes) when it has checked the piece's hash. Throws FileError, with the file, the tensor and the
  /// offset, if a piece cannot be read or is damaged.
  void read(std::size_t tensor, std::span<const Block> wanted, const Place& place, const Visit& visit) const;
  /// Checks the hashes of the headers of all files. They describe the pieces to other readers; pdp reads the manifest.
  void check_headers() const;
  /// Checks all hashes. Calls found(message) for each damaged header or piece.
  void verify(const std::function<void(const std::string&)>& found) const;
  /// Returns the number of bytes of pieces that read() has read so far.
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// Opens a file, and closes the one before: a checkpoint may have more files than a process may open.
  [[nodiscard]] const data::Input& open(std::size_t file) const;
  [[nodiscard]] std::string damage_of(const StoredPiece& piece, const Hash& found) const;
  /// Reads a piece to `to`, or to own memory if that is empty.
  [[nodiscard]] std::span<const std::byte> read_piece(const StoredPiece& piece, std::span<std::byte> to) const;
  void check_header(std::size_t file) const;

  std::filesystem::path folder_;
  Hash hash_;
  Manifest manifest_;
  std::vector<std::vector<std::size_t>> pieces_of_;  // [tensor]: numbers of pieces
  mutable std::optional<data::Input> opened_;
  mutable std::size_t opened_file_ = 0;   // its number
  mutable std::vector<std::byte> bytes_;  // of a piece
  mutable std::uint64_t bytes_read_ = 0;
};

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/pieces.hpp>
#endif
