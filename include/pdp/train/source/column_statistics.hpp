#pragma once

/// Definitions for pdp/train/column_statistics.hpp; see pdp/core/separate_compilation.hpp.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/column_statistics.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>
#include <pdp/train/column_statistics.hpp>

namespace pdp {

PDP_INLINE void detail::check_has_values(Index samples, const Shape& sample) {
  if (samples < 1 || sample.elements() < 1)
    throw ConfigError{text("expected a dataset with samples and values, found ", samples, " samples of shape ", text(sample),
                           ". Check where the data comes from.")};
}

PDP_INLINE void detail::check_all_finite(std::span<const float> rows, std::span<const Index> samples) {
  const std::size_t columns = samples.empty() ? 0 : rows.size() / samples.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!is_finite(rows[i]))
      throw FileError{text("expected finite values in the dataset, found ", is_nan(rows[i]) ? "NaN" : "infinity", " in sample ",
                           samples[i / columns], ", column ", i % columns, ". Replace or remove such samples.")};
}

PDP_INLINE void detail::append(std::vector<double>& numbers, const data::ColumnMoments& moments) {
  numbers.insert(numbers.end(), moments.mean().begin(), moments.mean().end());
  numbers.insert(numbers.end(), moments.squares().begin(), moments.squares().end());
}

PDP_INLINE data::ColumnMoments detail::merged(std::span<const double> numbers, Index samples, Index columns) {
  data::ColumnMoments all{columns};
  for (int part = 0; part < statistics_parts; ++part) {
    const auto mean = numbers.subspan(as_size(2 * part * columns), as_size(columns));
    const auto squares = numbers.subspan(as_size((2 * part + 1) * columns), as_size(columns));
    const Index of_part = data::shard_rows(samples, {part, statistics_parts}).size();
    all.merge({of_part, {mean.begin(), mean.end()}, {squares.begin(), squares.end()}});
  }
  return all;
}

PDP_INLINE data::ColumnMoments detail::merged_shares(std::span<const double> ranks, int shares, Index columns) {
  const std::size_t of_rank = 2 + 2 * as_size(columns);
  data::ColumnMoments all{columns};
  for (int share = 0; share < shares; ++share) {
    for (std::size_t at = 0; at < ranks.size(); at += of_rank) {
      if (ranks[at] != as_double(share)) continue;
      const auto mean = ranks.subspan(at + 2, as_size(columns)), squares = ranks.subspan(at + 2 + as_size(columns), as_size(columns));
      all.merge({static_cast<Index>(ranks[at + 1]), {mean.begin(), mean.end()}, {squares.begin(), squares.end()}});
      break;
    }
  }
  return all;
}

namespace detail {

/// Returns numbers as one text, in the shortest form from which the same bits can be read.
PDP_INLINE std::string text_of_numbers(const std::vector<double>& numbers) {
  std::string joined;
  for (const double number : numbers) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    if (!joined.empty()) joined += ' ';
    joined.append(digits.data(), end);
  }
  return joined;
}

/// Reads such a text. Returns an empty list if it is another.
PDP_INLINE std::vector<double> numbers_of_text(std::string_view joined) {
  std::vector<double> numbers;
  for (const char* at = joined.data(); at != joined.data() + joined.size();) {
    if (!numbers.empty() && *at++ != ' ') return {};
    double number = 0;
    const auto [end, error] = std::from_chars(at, joined.data() + joined.size(), number);
    if (error != std::errc{} || !is_finite(number)) return {};
    numbers.push_back(number);
    at = end;
  }
  return numbers;
}

}  // namespace detail

PDP_INLINE void store_statistics(checkpoint::Values& values, std::string_view name, const data::ColumnStatistics& statistics) {
  values.insert_or_assign(text(name, ".samples"), std::int64_t{statistics.samples});
  values.insert_or_assign(text(name, ".mean"), detail::text_of_numbers(statistics.mean));
  values.insert_or_assign(text(name, ".deviation"), detail::text_of_numbers(statistics.deviation));
}

PDP_INLINE data::ColumnStatistics stored_statistics(const checkpoint::Values& values, std::string_view name) {
  const auto numbers = [&](const char* part) {
    const auto found = values.find(text(name, part));
    const auto* const words = found == values.end() ? nullptr : std::get_if<std::string>(&found->second);
    return words == nullptr ? std::vector<double>{} : detail::numbers_of_text(*words);
  };
  const auto samples = values.find(text(name, ".samples"));
  data::ColumnStatistics statistics{0, numbers(".mean"), numbers(".deviation")};
  if (samples == values.end() || !std::holds_alternative<std::int64_t>(samples->second) || statistics.mean.empty() ||
      statistics.mean.size() != statistics.deviation.size())
    throw FileError{text("expected the statistics ", in_quotes(name), " in the values of a checkpoint, found ",
                         samples == values.end() ? "none of this name" : "damaged ones",
                         ". Add them with store_statistics() before the checkpoint is saved.")};
  statistics.samples = std::get<std::int64_t>(samples->second);
  return statistics;
}

}  // namespace pdp
