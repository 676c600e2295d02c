#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "fuzz.hpp"

namespace {

constexpr std::string_view key = R"("hash":")";

/// Gives the manifest the right hash, if it has a place for one. Otherwise nearly no input would pass the check of the hash.
std::string with_hash(std::string words) {
  const std::size_t at = words.rfind(key);
  if (at == std::string::npos || at + key.size() + 32 > words.size()) return words;
  const auto digits = words.begin() + static_cast<std::ptrdiff_t>(at + key.size());
  std::fill_n(digits, 32, '0');
  const std::string hash = pdp::checkpoint::text_of(pdp::checkpoint::hash_of(std::as_bytes(std::span{words})));
  std::copy(hash.begin(), hash.end(), digits);
  return words;
}

void check(const std::string& words) {
  pdp::checkpoint::Manifest manifest;
  try {
    manifest = pdp::checkpoint::decode(words, "manifest.json");
  } catch (const pdp::FileError&) {
    return;
  }
  // All that a reader relies on: the pieces lie in their tensors and files, and cover both.
  std::int64_t elements = 0, covered = 0;
  std::uint64_t bytes = 0, in_pieces = 0;
  for (const auto& tensor : manifest.tensors) elements += tensor.rows * tensor.cols;
  for (const auto& file : manifest.files) bytes += file.bytes - file.header;
  for (const auto& piece : manifest.pieces) {
    const auto& tensor = manifest.tensors.at(piece.tensor);
    const auto& file = manifest.files.at(piece.file);
    if (common(piece.block, {0, 0, tensor.rows, tensor.cols}) != piece.block) std::abort();
    if (piece.begin < file.header || piece.begin + manifest.bytes_of(piece) > file.bytes) std::abort();
    covered += piece.block.elements();
    in_pieces += manifest.bytes_of(piece);
  }
  if (covered != elements || in_pieces != bytes) std::abort();
  const std::string again = pdp::checkpoint::encode(manifest);
  if (pdp::checkpoint::encode(pdp::checkpoint::decode(again, "manifest.json")) != again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::AllocationBound bound{(std::size_t{1} << 20) + 4096 * size};
  check(with_hash({reinterpret_cast<const char*>(data), size}));
  return 0;
}
