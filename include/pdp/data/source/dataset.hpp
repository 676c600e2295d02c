#pragma once

/// Definitions for pdp/data/dataset.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>

namespace pdp::data {

PDP_INLINE void detail::check_gather(Index samples, std::span<const Index> which, const GatherSizes& sizes) {
  const auto check = [&](const char* span, std::size_t found, Index of_sample) {
    const Index expected = as_index(which.size()) * of_sample;
    if (as_index(found) != expected)
      throw ShapeError{text("gather of ", which.size(), " samples: expected ", expected, " elements in ", span, " (", of_sample,
                            " for each sample), found ", found, ". Pass a span with that many elements.")};
  };
  check("x", sizes.x, sizes.x_of_sample);
  check("y", sizes.y, sizes.y_of_sample);
  for (const Index sample : which)
    if (sample < 0 || sample >= samples)
      throw ShapeError{text("gather: expected sample numbers from 0 to ", samples - 1, ", found ", sample,
                            ". Make the sampler with the size of this dataset.")};
}

}  // namespace pdp::data
