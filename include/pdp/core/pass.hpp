#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/step_state.hpp>

namespace pdp {

/// The numbers of a tensor's columns among those of all ranks. A rank may have `own` of every `all` values of the last dimension, from
/// `first` on; if `own` is 0, it has all columns.
struct ColumnNumbers {
  Index first = 0;
  Index own = 0;
  Index all = 0;

  [[nodiscard]] constexpr Index operator()(Index column) const { return own == 0 ? column : column / own * all + first + column % own; }
  /// Returns the end of the columns from `column` on whose numbers are consecutive, but at most `columns`.
  [[nodiscard]] constexpr Index end_of_run(Index column, Index columns) const {
    return own == 0 ? columns : std::min(columns, (column / own + 1) * own);
  }
};

/// Random numbers of a layer in a step, one for each row and column. A number depends on the trainer's seed, the layer's path, the step,
/// and the numbers of the row and the column among those of all ranks. So it is the same under every strategy, in every division into
/// micro-batches, and if backward draws it again. Callers count rows and columns from the first ones of the pass.
class RowGenerator {
 public:
  constexpr RowGenerator(random::Key key, Index first_row, const ColumnNumbers& columns)
      : key_{key}, first_row_{first_row}, columns_{columns} {}

  /// Returns a uniform number in [0, 1).
  template <std::floating_point T = float>
  [[nodiscard]] constexpr T uniform(Index row, Index column) const {
    constexpr Index count = random::per_block<T>;
    const Index at = columns_(column);
    return random::uniform_in<T>(random::bits(key_, static_cast<std::uint64_t>(at / count), static_cast<std::uint64_t>(first_row_ + row)),
                                 at % count);
  }
  /// Calls visit(column, number) with the same numbers for columns 0 to `columns` - 1 of a row. Computes each block of them once.
  template <class Visit>
  constexpr void for_each_uniform(Index row, Index columns, Visit&& visit) const {
    constexpr Index count = random::per_block<float>;
    for (Index column = 0; column < columns;) {
      const Index at = columns_(column), end = columns_.end_of_run(column, columns);
      const random::Block block = random::bits(key_, static_cast<std::uint64_t>(at / count), static_cast<std::uint64_t>(first_row_ + row));
      for (Index which = at % count; which < count && column < end; ++which) visit(column++, random::uniform_in<float>(block, which));
    }
  }
  /// Returns a normal number with mean 0 and standard deviation 1.
  template <std::floating_point T = float>
  [[nodiscard]] T normal(Index row, Index column) const {
    return random::normal<T>(key_, columns_(column), static_cast<std::uint64_t>(first_row_ + row));
  }

 private:
  random::Key key_;
  Index first_row_;
  ColumnNumbers columns_;
};

/// Whether a layer or a loss needs the numbers of its rows among those of all ranks. It declares `static constexpr bool uses_row_numbers =
/// true`. If the caller of a step does not say how many rows all ranks have, the ranks then exchange that before the step.
template <class L>
constexpr bool uses_row_numbers = requires {
  requires L::uses_row_numbers;
};

/// The pass over some rows for which a layer or a loss computes: a part of a step, of an evaluation or of a prediction.
struct Pass {
  bool is_training = false;              // a step, unless the layer is frozen
  const StepNumbers* numbers = nullptr;  // in a step, its numbers, in the device's memory
  random::Key key{};                     // of the layer's random numbers
  Index first_row = 0;                   // number of the first row among those of all ranks, if the layer declares uses_row_numbers
  ColumnNumbers columns{};               // numbers of the input's columns among those of all ranks

  /// Returns 1 / rows of all ranks, times the loss scale. Rows that the loss ignores are included. In a step.
  [[nodiscard]] constexpr double row_scale() const { return numbers->row_scale; }

  /// Returns the random numbers of `layer`, which must declare uses_row_numbers. In a step.
  template <class L>
  [[nodiscard]] constexpr RowGenerator generator(const L&) const {
    static_assert(uses_row_numbers<L>,
                  "pdp: a layer or a loss that draws random numbers must declare `static constexpr bool uses_row_numbers = true`");
    return row_generator();
  }
  /// Returns the same numbers to an operation of a device.
  [[nodiscard]] constexpr RowGenerator row_generator() const {
    return {random::make_key(key.value, numbers->info.number), first_row, columns};
  }
};

}  // namespace pdp
