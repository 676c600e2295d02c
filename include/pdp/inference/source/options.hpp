#pragma once

/// Definitions for pdp/inference/options.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/inference/options.hpp>

namespace pdp {

PDP_INLINE PredictorOptions detail::checked(PredictorOptions options) {
  if (options.rows < 0 || options.callers < 1)
    throw ConfigError{text("rows = ", options.rows, " and callers = ", options.callers,
                           " were given; a Predictor takes 0 rows or more, and 1 caller or more")};
  if (options.rows == 0) options.rows = PredictorOptions::default_rows;
  return options;
}

PDP_INLINE Shape detail::sample_shape(const PredictorOptions& options, Index elements) {
  if (options.input.known()) return options.input;
  if (elements == 0)
    throw ConfigError{
        "the model takes samples of several shapes, so the predictor needs theirs, as in {.input = Shape{784}} or {.input = Shape{1, 28, "
        "28}}"};
  return Shape{elements};
}

PDP_INLINE Index detail::predicted_rows(std::size_t values, Index width) {
  if (as_index(values) % width != 0)
    throw ShapeError{text("the input has ", values, " values, which is not a multiple of the sample size ", width,
                          "; give whole samples, one after another")};
  return as_index(values) / width;
}

PDP_INLINE void detail::check_outputs(std::size_t values, Index rows, Index width) {
  if (as_index(values) != rows * width)
    throw ShapeError{text("the memory for outputs has ", values, " values, but ", rows, rows == 1 ? " row has " : " rows have ",
                          rows * width, " outputs; give memory of that size")};
}

}  // namespace pdp
