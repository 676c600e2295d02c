#include <pdp/core/error.hpp>
#include <pdp/data/gzip.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "fuzz.hpp"

namespace {

/// Returns `bytes` as a member of a gzip file.
std::string pack(std::string_view bytes, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

/// Unpacks in pieces of `piece` bytes. Aborts at more than `most` bytes.
std::string unpack(std::string_view packed, std::size_t piece, std::size_t most) {
  const pdp::data::Input input{std::as_bytes(std::span{packed})};
  pdp::data::UnpackedBytes from{input};
  std::string all, buffer(piece, '\0');
  while (all.size() <= most) {
    const std::size_t count = from.read(std::as_writable_bytes(std::span{buffer}));
    if (count > piece) std::abort();
    all.append(buffer, 0, count);
    if (count < piece) return all;
  }
  std::abort();  // more than a stream of this length can unpack to
}

}  // namespace

/// Any bytes are unpacked or rejected with FileError. Two packed members with zeros between them unpack to the original bytes.
/// A changed byte in them is detected or harmless.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 4) return 0;
  const std::string_view given{reinterpret_cast<const char*>(bytes) + 4, size - 4};
  const std::size_t piece = std::size_t{1} + bytes[1] * std::size_t{bytes[1]};
  if (bytes[0] % 2 == 0) {
    const fuzz::AllocationBound bound{1'000'000 + 8 * 1032 * size};
    try {
      static_cast<void>(unpack(given, piece, 1032 * size + piece));
    } catch (const pdp::FileError&) {
    }
    return 0;
  }
  const std::size_t cut = std::min<std::size_t>(given.size(), bytes[2]);
  std::string packed =
      pack(given.substr(0, cut), bytes[0] / 2 % 10) + std::string(bytes[3] % 8, '\0') + pack(given.substr(cut), bytes[0] / 2 % 10);
  if (unpack(packed, piece, size + piece) != given) std::abort();
  packed[(bytes[2] * 256u + bytes[3]) % packed.size()] ^= static_cast<char>(bytes[1] | 1);
  try {
    if (unpack(packed, piece, 1032 * packed.size() + piece) != given &&
        pdp::data::is_gzip(pdp::data::Input{std::as_bytes(std::span{packed})}))
      std::abort();
  } catch (const pdp::FileError&) {
  }
  return 0;
}
