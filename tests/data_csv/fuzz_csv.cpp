#include <pdp/data/csv.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include <pdp/core/finite.hpp>

#include "fuzz.hpp"

namespace {

template <class T>
void check(std::span<const std::byte> bytes, const pdp::data::CsvOptions& options) {
  try {
    const auto set = pdp::data::read_csv<T>(pdp::data::Input{bytes}, options);
    if (set.size() < 1 || set.target_shape().elements() != 1) std::abort();
    std::vector<pdp::Index> which(static_cast<std::size_t>(set.size()));
    std::iota(which.begin(), which.end(), pdp::Index{0});
    std::vector<float> x(which.size() * static_cast<std::size_t>(set.sample_shape().elements()));
    std::vector<T> y(which.size());
    set.gather(which, x, y);
    for (const float value : x)
      if (!pdp::is_finite(value)) std::abort();
  } catch (const pdp::FileError&) {
  }
}

}  // namespace

/// A file is rejected with FileError, or its numbers are finite. It allocates at most a multiple of the file size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) return 0;  // fuzz_gzip unpacks
  const fuzz::AllocationBound bound{2'000'000 + 1'000 * size};
  const auto all = std::as_bytes(std::span{bytes, size});
  check<float>(all, {.targets = {0}, .header = false});
  check<float>(all, {.inputs = {"a", 1}, .targets = {"b"}});
  check<std::int32_t>(all, {.targets = {1}, .separator = ';'});
  return 0;
}
