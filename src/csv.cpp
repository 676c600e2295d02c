// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <cstdint>

#include <pdp/data/source/csv.hpp>

namespace pdp::data {

template InMemory<std::int32_t> read_csv(const Input&, const CsvOptions&);
template InMemory<float> read_csv(const Input&, const CsvOptions&);

}  // namespace pdp::data
