#pragma once

/// Definitions for pdp/data/normalised.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/column_statistics.hpp>
#include <pdp/data/normalised.hpp>

namespace pdp::data {

PDP_INLINE Normalisation::Normalisation(const ColumnStatistics& statistics) {
  const auto& [samples, mean, deviation] = statistics;
  if (mean.empty() || mean.size() != deviation.size())
    throw ConfigError{text("expected statistics with a mean and a deviation of each column, found ", mean.size(), " means and ",
                           deviation.size(), " deviations. Compute them with column_statistics().")};
  std::vector<Scale> scales;
  for (std::size_t column = 0; column < mean.size(); ++column) {
    if (!is_finite(mean[column]) || !is_finite(deviation[column]) || deviation[column] < 0)
      throw ConfigError{text("expected a finite mean and a deviation of 0 or more in column ", column, ", found ", mean[column], " and ",
                             deviation[column], ". Compute them with column_statistics().")};
    scales.push_back({mean[column], deviation[column] > 0 ? 1 / deviation[column] : 1});
  }
  scales_ = std::make_shared<const std::vector<Scale>>(std::move(scales));
}

PDP_INLINE void Normalisation::apply(std::span<float> rows) const {
  if (as_index(rows.size()) % columns() != 0)
    throw ShapeError{
        text("expected rows of ", columns(), " values to normalise, found ", rows.size(), " values. Give every sample its full row.")};
  const Scale* const scales = scales_->data();
  const std::size_t width = scales_->size();
  for (std::size_t row = 0; row < rows.size(); row += width) {
    for (std::size_t column = 0; column < width; ++column) {
      float& value = rows[row + column];
      value = static_cast<float>((as_double(value) - scales[column].mean) * scales[column].factor);
    }
  }
}

}  // namespace pdp::data
