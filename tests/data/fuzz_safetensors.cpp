#include <pdp/data/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

template <class T>
void read(const pdp::data::SafeTensors& file, const pdp::data::TensorInfo& tensor) {
  if (tensor.type != pdp::data::element_type_of<T>) return;
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  file.read<T>(tensor.name, values);
}

}  // namespace

/// Whatever the bytes are, a file is refused by a FileError, or all of its tensors can be read and are all of its bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const pdp::data::SafeTensors file{pdp::data::Input{std::as_bytes(std::span{bytes, size})}};
    std::size_t total = 0;
    for (const auto& tensor : file.tensors()) {
      read<double>(file, tensor);
      read<float>(file, tensor);
      read<pdp::data::Float16>(file, tensor);
      read<std::int64_t>(file, tensor);
      read<std::uint8_t>(file, tensor);
      total += tensor.end - tensor.begin;
    }
    if (total > size) std::abort();
  } catch (const pdp::FileError&) {
  }
  return 0;
}
