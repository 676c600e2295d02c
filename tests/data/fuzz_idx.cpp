#include <pdp/data/idx.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

/// Whatever the bytes are, read_idx gives an array that fits its extents, or throws FileError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const auto idx = pdp::data::read_idx(pdp::data::Input{std::as_bytes(std::span{bytes, size})});
    pdp::Index product = 1;
    for (const pdp::Index extent : idx.extents) product *= extent;
    if (product != static_cast<pdp::Index>(idx.values.size())) std::abort();
  } catch (const pdp::FileError&) {
  }
  return 0;
}
