#include <pdp/data/idx.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "fuzz.hpp"

/// read_idx returns an array that fits its extents, or throws FileError. It allocates at most a multiple of the file size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t most_unpacked = 1032;  // the most bytes into which deflate unpacks one byte
  const bool packed = size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
  const fuzz::AllocationBound bound{1'000'000 + 4 * size * (packed ? most_unpacked : 1)};
  try {
    const auto idx = pdp::data::read_idx(pdp::data::Input{std::as_bytes(std::span{bytes, size})});
    pdp::Index product = 1;
    for (const pdp::Index extent : idx.extents) product *= extent;
    if (product != static_cast<pdp::Index>(idx.values.size())) std::abort();
  } catch (const pdp::FileError&) {
  }
  return 0;
}
