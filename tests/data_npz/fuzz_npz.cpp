#include <pdp/data/npz.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "fuzz.hpp"

/// A file is rejected with FileError, or its arrays are those that its names list. It allocates at most a multiple of the file size, which
/// deflate limits, and what libzip allocates for the number of files that the end of an archive names: 32 bytes for each of up to 65,535.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::AllocationBound bound{4'000'000 + 4'000 * size};
  try {
    const pdp::data::Npz file{pdp::data::Input{std::as_bytes(std::span{bytes, size})}};
    for (const std::string& name : file.names()) {
      try {
        const auto array = file.read<float>(name);
        pdp::Index elements = 1;
        for (const pdp::Index extent : array.extents) elements *= extent;
        if (static_cast<pdp::Index>(array.values.size()) != elements) std::abort();
      } catch (const pdp::FileError&) {
      }
    }
    static_cast<void>(pdp::data::read_npz<float>(file));
  } catch (const pdp::FileError&) {
  }
  return 0;
}
