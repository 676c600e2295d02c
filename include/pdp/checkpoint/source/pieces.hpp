#pragma once

/// Definitions for pdp/checkpoint/pieces.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/replace_file.hpp>

namespace pdp::checkpoint {

namespace detail {

/// Calls visit(block, bytes) for the pieces into which a part is cut: as many whole rows as fit into piece_bytes(), at least one.
template <class Visit>
void for_each_piece(const PartToWrite& part, const Visit& visit) {
  const std::size_t row_bytes = as_size(part.block.cols) * part.tensor.bytes_of_element();
  const Index rows = std::max<Index>(1, as_index(piece_bytes(part.bytes.size()) / std::max<std::size_t>(row_bytes, 1)));
  for (Index row = 0; row < part.block.rows; row += rows) {
    const Index count = std::min(rows, part.block.rows - row);
    visit(Block{part.block.row + row, part.block.col, count, part.block.cols},
          part.bytes.subspan(as_size(row) * row_bytes, as_size(count) * row_bytes));
  }
}

/// Numbers tensors by their names, and checks that all descriptions of a tensor are the same.
class TensorNumbers {
 public:
  explicit TensorNumbers(Manifest& manifest) : manifest_{manifest} {}

  std::size_t operator[](const StoredTensor& tensor) {
    const auto [place, is_new] = numbers_.try_emplace({tensor.name, tensor.state}, manifest_.tensors.size());
    if (is_new) manifest_.tensors.push_back(tensor);
    if (manifest_.tensors[place->second] != tensor)
      throw FileError{text("two ranks describe ", tensor.words(), " differently; give all ranks the same model and precision")};
    return place->second;
  }

 private:
  Manifest& manifest_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
};

}  // namespace detail

PDP_INLINE Manifest write_pieces(const std::filesystem::path& file, const std::vector<PartToWrite>& parts) {
  Manifest manifest;
  detail::TensorNumbers numbers{manifest};
  std::vector<std::span<const std::byte>> bytes;
  for (const PartToWrite& part : parts) {
    const std::size_t tensor = numbers[part.tensor];
    detail::for_each_piece(part, [&](const Block& block, std::span<const std::byte> piece) {
      manifest.pieces.push_back({tensor, 0, block, 0, {}});
      bytes.push_back(piece);
    });
  }
  const std::string header = safetensors_header(manifest);
  std::uint64_t end = header.size();
  data::ReplaceFile to{file};
  to.write(std::as_bytes(std::span{header}));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    manifest.pieces[i].begin = end;
    manifest.pieces[i].hash = hash_of(bytes[i]);
    end += bytes[i].size();
    to.write(bytes[i]);
  }
  to.commit();
  manifest.files.push_back({file.filename().string(), end, header.size(), hash_of(std::as_bytes(std::span{header}))});
  return manifest;
}

PDP_INLINE Manifest joined(const Position& position, const Values& values, const std::vector<Manifest>& parts) {
  Manifest all;
  all.position = position;
  all.values = values;
  all.ranks = as_int(parts.size());
  detail::TensorNumbers numbers{all};
  for (const Manifest& part : parts) {
    const std::size_t first = all.files.size();
    std::ranges::copy(part.files, std::back_inserter(all.files));
    for (StoredPiece piece : part.pieces) {
      piece.tensor = numbers[part.tensors[piece.tensor]];
      piece.file += first;
      all.pieces.push_back(piece);
    }
  }
  return all;
}

PDP_INLINE PieceReader::PieceReader(std::filesystem::path folder) : folder_{std::move(folder)} {
  const std::filesystem::path path = folder_ / Manifest::file_name;
  const data::Input input{path};
  std::string words(input.size(), '\0');
  words.resize(input.read_at(0, std::as_writable_bytes(std::span{words})));
  manifest_ = decode(words, path.string());
  hash_ = hash_of(std::as_bytes(std::span{words}));
  for (const StoredFile& file : manifest_.files) {
    const data::Input opened{folder_ / file.name};
    if (opened.size() != file.bytes)
      throw FileError{
          text(opened.name(), ": expected a file of ", file.bytes, " bytes, found ", opened.size(), " bytes. Use another checkpoint.")};
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{folder_, ignored}) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rank-") && std::ranges::find(manifest_.files, name, &StoredFile::name) == manifest_.files.end())
      throw FileError{text(entry.path().string(), ": expected only the ", manifest_.files.size(),
                           " files that the manifest names, found this one. Is it part of another checkpoint? Move it away.")};
  }
  pieces_of_.resize(manifest_.tensors.size());
  for (std::size_t number = 0; number < manifest_.pieces.size(); ++number) pieces_of_[manifest_.pieces[number].tensor].push_back(number);
}

PDP_INLINE const data::Input& PieceReader::open(std::size_t file) const {
  if (!opened_ || opened_file_ != file) {
    opened_.reset();
    opened_.emplace(folder_ / manifest_.files[file].name);
    opened_file_ = file;
  }
  return *opened_;
}

PDP_INLINE std::string PieceReader::damage_of(const StoredPiece& piece, const Hash& found) const {
  return text(open(piece.file).name(), ": ", manifest_.tensors[piece.tensor].words(), " is damaged between the bytes ", piece.begin,
              " and ", piece.begin + manifest_.bytes_of(piece), ": their hash is ", text_of(found), ", but the manifest says ",
              text_of(piece.hash), ". Use another checkpoint.");
}

PDP_INLINE std::span<const std::byte> PieceReader::read_piece(const StoredPiece& piece, std::span<std::byte> to) const {
  if (to.empty()) {
    bytes_.resize(manifest_.bytes_of(piece));
    to = bytes_;
  }
  const data::Input& file = open(piece.file);
  if (file.read_at(piece.begin, to) != to.size())
    throw FileError{text(file.name(), ": the file became shorter while it was read. Use another checkpoint.")};
  bytes_read_ += to.size();
  return to;
}

PDP_INLINE void PieceReader::read(std::size_t tensor, std::span<const Block> wanted, const Place& place, const Visit& visit) const {
  for (const std::size_t number : pieces_of_[tensor]) {
    const StoredPiece& piece = manifest_.pieces[number];
    if (std::ranges::all_of(wanted, [&](const Block& block) { return common(block, piece.block).is_empty(); })) continue;
    const std::span<const std::byte> bytes = read_piece(piece, place(piece.block));
    if (const Hash hash = hash_of(bytes); hash != piece.hash) throw FileError{damage_of(piece, hash)};
    visit(piece.block, bytes);
  }
}

PDP_INLINE void PieceReader::check_header(std::size_t file) const {
  std::vector<std::byte> header(manifest_.files[file].header);
  const std::size_t count = open(file).read_at(0, header);
  if (count != header.size() || hash_of(header) != manifest_.files[file].header_hash)
    throw FileError{text(open(file).name(), ": its header is damaged (the bytes 0 to ", header.size(), "). Use another checkpoint.")};
}

PDP_INLINE void PieceReader::check_headers() const {
  for (std::size_t file = 0; file < manifest_.files.size(); ++file) check_header(file);
}

PDP_INLINE void PieceReader::verify(const std::function<void(const std::string&)>& found) const {
  for (std::size_t file = 0; file < manifest_.files.size(); ++file) {
    try {
      check_header(file);
    } catch (const FileError& error) {
      found(error.what());
    }
  }
  for (const StoredPiece& piece : manifest_.pieces) {
    if (const Hash hash = hash_of(read_piece(piece, {})); hash != piece.hash) found(damage_of(piece, hash));
  }
}

}  // namespace pdp::checkpoint
