// Decodes any bytes as the arguments of remote calls. Wrong data must throw pdp::Error, and must not allocate more than they contain.

#include <pdp/rpc/codec.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

struct Part {
  std::vector<double> values;
  std::optional<std::string> name;
};
using Arguments = std::tuple<std::vector<float>, std::string, std::vector<Part>, std::vector<bool>, std::array<std::int32_t, 3>,
                             std::vector<std::pair<std::uint8_t, std::vector<std::string>>>>;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  // The first bytes are the sizes of up to two large arrays.
  const std::vector<std::uint64_t> all{data[0] * std::uint64_t{64}, data[1] * std::uint64_t{8}};
  const std::span<const std::uint64_t> sizes = std::span{all}.first(data[2] % 3u);
  Arguments into;
  try {
    pdp::rpc::Reader reader{std::as_bytes(std::span{data + 3, size - 3}), sizes};
    pdp::rpc::Codec<Arguments>::read(reader, into);
    reader.finish();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (reader.arrays()[i].size() != sizes[i]) __builtin_trap();
    for (const auto& array : reader.arrays())
      for (std::byte& each : array) each = std::byte{1};  // a wrong destination is found by the sanitizer
  } catch (const pdp::Error&) {
  }
  return 0;
}
