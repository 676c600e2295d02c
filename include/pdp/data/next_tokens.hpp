#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// A range of tokens in a sequence: from number `first` to `end` - 1.
struct TokenRange {
  Index first = 0;
  Index end = std::numeric_limits<Index>::max();  // or the end of the sequence, if that is less
};

/// A Dataset for models that predict the next token. A sample is a window of `positions` tokens of a long sequence. Its targets are the
/// tokens one position later. The windows lie one behind the other.
///
/// In each epoch of a training, all windows begin some tokens later, from 0 to positions - 1, at random: so a token is not always predicted
/// from the same number of tokens before it. In an evaluation they do not move. Some tokens at the end of the range are in no
/// window.
///
///   const data::MappedRows text = data::map_raw("book.txt", {.type = data::ElementType::U8, .row = Shape{1}});  // bytes are tokens
///   const data::NextTokens training{text, 128, {.end = text.size() * 9 / 10}}, held_out{text, 128, {.first = text.size() * 9 / 10}};
///
/// Copies share the mapping.
class NextTokens {
 public:
  using Sample = std::int32_t;
  using Target = std::int32_t;

  /// Takes whole numbers, one in each row. Throws ConfigError if positions is below 1 or the range has fewer than 2 * positions tokens, and
  /// FileError if the rows have several elements, or other elements than whole numbers.
  NextTokens(MappedRows tokens, Index positions, const TokenRange& range = {});

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Shape sample_shape() const { return Shape{positions_}; }
  [[nodiscard]] Shape target_shape() const { return Shape{positions_}; }

  /// Copy samples as described by the concept Dataset. Throw FileError if a file has shrunk, or a token does not fit 32 bits.
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const { copy(which, x, y, 0); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, const TrainingEpoch& epoch) const;

 private:
  void copy(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, Index shift) const;

  MappedRows tokens_;
  Index positions_, first_;
  Index size_ = 0;
};
static_assert(TakesEpoch<NextTokens>);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/next_tokens.hpp>
#endif
