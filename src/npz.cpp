// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <cstdint>

#include <pdp/data/source/npz.hpp>

namespace pdp::data {

template InMemory<std::int32_t> read_npz(const Npz&, const NpzOptions&);
template InMemory<float> read_npz(const Npz&, const NpzOptions&);

}  // namespace pdp::data
