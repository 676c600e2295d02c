#pragma once

/// Definitions for pdp/nn/stage.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <vector>

#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage.hpp>

namespace pdp::nn {

PDP_INLINE void detail::append_key_of_passes(std::vector<random::Key>& keys, std::uint64_t seed, const Path& layer) {
  keys.push_back(random::make_key(seed, "pass", layer.str()));
}

}  // namespace pdp::nn
