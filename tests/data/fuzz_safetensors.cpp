#include <pdp/data/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz.hpp"

namespace {

template <class T>
void read(const pdp::data::SafeTensors& file, const pdp::data::TensorInfo& tensor) {
  const bool right = tensor.type == pdp::data::element_type_of<T>;
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  try {
    file.read<T>(tensor.name, values);
    if (!right) std::abort();
  } catch (const pdp::FileError&) {
    if (right && !std::same_as<T, bool>) std::abort();
  }
}

void check(std::span<const std::byte> bytes) {
  try {
    const pdp::data::SafeTensors file{pdp::data::Input{bytes}};
    std::uint64_t end = 0;
    for (const auto& tensor : file.tensors()) {
      if (tensor.begin != end || tensor.end < tensor.begin || &file.at(tensor.name) != &tensor) std::abort();
      end = tensor.end;
      if (tensor.type != pdp::data::ElementType::unknown &&
          static_cast<std::size_t>(tensor.elements()) * info(tensor.type).bits != 8 * (tensor.end - tensor.begin))
        std::abort();
      if (tensor.type_name().empty() && !tensor.unknown_type.empty()) std::abort();
      read<double>(file, tensor);
      read<float>(file, tensor);
      read<pdp::data::Float16>(file, tensor);
      read<std::int64_t>(file, tensor);
      read<std::uint32_t>(file, tensor);
      read<std::uint8_t>(file, tensor);
    }
    if (end > bytes.size()) std::abort();
  } catch (const pdp::FileError&) {
  }
}

}  // namespace

/// A file is rejected with FileError, or all of its tensors can be read and cover all of its data.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // Allows a few error messages for each tensor, which takes at least 50 characters of the header, and eight values of each type for each
  // byte of data.
  const fuzz::AllocationBound bound{400'000 + 1'000 * size};
  check(std::as_bytes(std::span{bytes, size}));
  if (size == 0) return 0;
  // Takes the input as the JSON header alone. Its first byte is the number of data bytes.
  const std::uint64_t length = size - 1;
  std::string whole(sizeof length, '\0');
  std::memcpy(whole.data(), &length, sizeof length);
  whole.append(reinterpret_cast<const char*>(bytes) + 1, size - 1).append(bytes[0], '\1');
  check(std::as_bytes(std::span{whole}));
  return 0;
}
