#pragma once

#include <cstddef>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// The options of a Predictor.
struct PredictorOptions {
  static constexpr Index default_rows = 64;

  Index rows = 0;   // computed at a time; more rows are computed in pieces. 0: default_rows
  int callers = 1;  // threads that may predict at the same time; each needs memory for `rows` rows, and further threads wait
  Shape input{};    // shape of a sample; needed only if the model takes any width
  int threads = 1;  // on which a call computes; more than one needs pdp::onednn, and a core for each
};

namespace detail {

/// Returns the options, with default_rows in place of 0 rows. Throws ConfigError if a number is out of range.
[[nodiscard]] PredictorOptions checked(PredictorOptions options);

/// Returns the shape of a sample: that of the options if it is set, else `elements` values. Throws ConfigError if neither is known.
[[nodiscard]] Shape sample_shape(const PredictorOptions& options, Index elements);

/// Returns the rows of an input of `values` values. Throws ShapeError if that is not a whole number.
[[nodiscard]] Index predicted_rows(std::size_t values, Index width);

/// Throws ShapeError unless a span of `values` values is as large as the outputs of `rows` rows.
void check_outputs(std::size_t values, Index rows, Index width);

}  // namespace detail

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/inference/source/options.hpp>
#endif
