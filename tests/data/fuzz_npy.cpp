#include <pdp/data/npy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <pdp/data/mapped.hpp>

#include "fuzz.hpp"

namespace {

template <class T>
void read(const pdp::data::Input& input, const pdp::data::NpyHeader& header) {
  const bool right = header.type == pdp::data::element_type_of<T>;
  try {
    const auto array = pdp::data::read_npy<T>(input);
    if (!right || array.extents != header.extents || array.values.size() != static_cast<std::size_t>(header.elements())) std::abort();
  } catch (const pdp::FileError&) {
    if (right) std::abort();
  }
}

void check(std::span<const std::byte> bytes) {
  try {
    const pdp::data::Input input{bytes};
    const auto header = pdp::data::read_npy_header(input);
    if (header.data_begin + static_cast<std::uint64_t>(header.elements()) * info(header.type).bits / 8 != bytes.size()) std::abort();
    read<float>(input, header);
    read<double>(input, header);
    read<std::int32_t>(input, header);
    read<std::int64_t>(input, header);
    read<std::uint8_t>(input, header);
    const auto rows = pdp::data::map_npy(pdp::data::Input{bytes});
    if (rows.size() != header.extents.front()) std::abort();
    std::vector<float> row(2 * static_cast<std::size_t>(rows.row_shape().elements()));
    rows.gather(std::array<pdp::Index, 2>{0, rows.size() - 1}, row);
  } catch (const pdp::FileError&) {
  }
}

}  // namespace

/// A file is rejected with FileError, or its array can be read and mapped, and covers all of its data.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::AllocationBound bound{400'000 + 20 * size};
  check(std::as_bytes(std::span{bytes, size}));
  // Takes the input as the text of the header, which the data, 60 bytes, follow.
  if (size > pdp::data::NpyHeader::largest) return 0;
  std::string whole{"\x93NUMPY\1\0", 8};
  const auto length = static_cast<std::uint16_t>(size);
  whole.append(reinterpret_cast<const char*>(&length), sizeof length);
  whole.append(reinterpret_cast<const char*>(bytes), size).append(60, '\1');
  check(std::as_bytes(std::span{whole}));
  return 0;
}
