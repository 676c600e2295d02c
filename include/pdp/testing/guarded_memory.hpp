#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>

namespace pdp::testing::detail {

/// Memory for numbers, between two zones that no code may write. The numbers are NaN at first, which shows elements that are not written.
template <class T>
class GuardedMemory {
 public:
  explicit GuardedMemory(Index elements) : elements_{elements}, all_{elements + 2 * zone} {
    std::ranges::fill(all_.span(), mark);
    clear();
  }

  [[nodiscard]] T* data() { return all_.data() + zone; }
  [[nodiscard]] std::span<T> values() { return {data(), as_size(elements_)}; }
  [[nodiscard]] std::vector<double> doubles() { return {data(), data() + elements_}; }
  [[nodiscard]] Matrix<T> matrix(Index rows, Index cols) { return {data(), rows, cols}; }
  [[nodiscard]] Matrix<const T> read(Index rows, Index cols) { return {data(), rows, cols}; }
  /// Sets all numbers to NaN.
  void clear() { std::ranges::fill(values(), not_a_number<T>()); }
  /// Returns whether the zones are as they were.
  [[nodiscard]] bool is_intact() {
    const auto is_mark = [](T value) { return value == mark; };
    return std::all_of(all_.data(), data(), is_mark) && std::all_of(data() + elements_, data() + elements_ + zone, is_mark);
  }

 private:
  static constexpr Index zone = as_index(alignment / sizeof(T));  // so that the numbers are aligned
  static constexpr T mark = 12345;

  Index elements_;
  Buffer<T> all_;
};

}  // namespace pdp::testing::detail
