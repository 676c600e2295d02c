#pragma once

/// Definitions for pdp/data/next_tokens.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/next_tokens.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

PDP_INLINE NextTokens::NextTokens(MappedRows tokens, Index positions, const TokenRange& range)
    : tokens_{std::move(tokens)}, positions_{positions}, first_{range.first} {
  if (tokens_.row_shape().elements() != 1)
    throw FileError{text(tokens_.name(), ": expected one token in each row, found rows of shape ", text(tokens_.row_shape()),
                         ". Give the file the row Shape{1}, or store the tokens as a vector.")};
  tokens_.gather({}, std::span<Sample>{});  // checks the type
  const Index end = std::min(range.end, tokens_.size()), there = end - range.first;
  if (positions < 1)
    throw ConfigError{text("data::NextTokens: expected windows of 1 token or more, found ", positions, "; choose a number above 0")};
  if (range.first < 0 || there < 2 * positions)
    throw ConfigError{text("data::NextTokens: expected a range of at least ", 2 * positions, " tokens, for windows of ", positions,
                           ", found tokens ", range.first, " to ", end, " of ", tokens_.name(), ", which has ", tokens_.size(),
                           "; choose shorter windows, or a longer range")};
  // The last window may begin positions - 1 tokens later, and needs one token more for its last target.
  size_ = (there - positions) / positions;
}

PDP_INLINE void NextTokens::gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y,
                                   const TrainingEpoch& epoch) const {
  random::Stream stream{random::make_key(epoch.seed, "shift of windows", epoch.number)};
  copy(which, x, y, as_index(stream.below(as_size(positions_))));
}

PDP_INLINE void NextTokens::copy(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, Index shift) const {
  check_gather(*this, which, x, y);
  std::array<Index, 256> numbers{};  // of tokens, some at a time
  for (std::size_t row = 0; row < which.size(); ++row) {
    const Index begin = first_ + which[row] * positions_ + shift;
    const std::span sample = x.subspan(row * as_size(positions_), as_size(positions_));
    const std::span target = y.subspan(row * as_size(positions_), as_size(positions_));
    for (std::size_t done = 0; done < sample.size(); done += numbers.size()) {
      const std::span some = std::span{numbers}.first(std::min(numbers.size(), sample.size() - done));
      std::iota(some.begin(), some.end(), begin + as_index(done));
      tokens_.gather(some, sample.subspan(done, some.size()));
    }
    std::ranges::copy(sample.subspan(1), target.begin());
    const std::array last{begin + positions_};
    tokens_.gather(last, target.last(1));
  }
}

}  // namespace pdp::data
