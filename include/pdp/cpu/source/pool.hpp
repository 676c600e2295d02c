#pragma once

/// Definitions for pdp/cpu/pool.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/pool.hpp>
#include <pdp/cpu/simd/simd.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Calls body(channel) for the channels of all rows, on all threads. `values`: of a channel.
template <class Body>
void for_each_channel(const Cpu& cpu, Index channels, Index values, const Body& body) {
  in_parts(cpu, channels, least_costly_part / std::max<Index>(values, 1) + 1, [&](Index begin, Index end) {
    with_simd(cpu.simd(), [=]<Simd S>() {
      for (Index channel = begin; channel < end; ++channel) body(channel);
    });
  });
}

/// Windows of one row of windows. A value of window first + i has the position `position` + i * stride in the channel.
struct WindowRun {
  Index first, count, position, stride;
};

/// The windows of a channel, with all that takes a division computed once.
class ChannelWindows {
 public:
  explicit ChannelWindows(const Pooling& how) : how_{how}, rows_{how.vertical.count()}, columns_{how.horizontal.count()} {
    for (Index j = 0; j < std::min(most, how.horizontal.size); ++j) inside_[as_size(j)] = how.horizontal.inside(j);
  }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index columns() const { return columns_; }

  /// Calls visit(run) for windows first_window to end_window - 1 of row `row` of windows, for each position of a window in turn. Leaves out
  /// positions outside the image. The innermost loops of pooling run over the windows of such a run, so that the compiler may compute
  /// several at a time.
  template <class Visit>
  [[gnu::always_inline]] void for_each_run(Index row, Index first_window, Index end_window, const Visit& visit) const {
    for (Index i = 0; i < how_.vertical.size; ++i) {
      const Index y = how_.vertical.position(row, i);
      if (!how_.vertical.is_inside(y)) continue;
      for (Index j = 0; j < how_.horizontal.size; ++j) {
        const Range inside = j < most ? inside_[as_size(j)] : how_.horizontal.inside(j);
        const Index first = std::max(inside.first, first_window), end = std::min(inside.end, end_window);
        if (first < end)
          visit(WindowRun{first, end - first, y * how_.horizontal.extent + how_.horizontal.position(first, j), how_.horizontal.stride});
      }
    }
  }

 private:
  static constexpr Index most = 16;

  Pooling how_;
  Index rows_, columns_;
  std::array<Range, as_size(most)> inside_{};  // the windows whose position j is in the image
};

/// Calls body(i) for i from 0 to count - 1 and the position i * stride. The stride is a constant for the usual ones.
template <class Body>
[[gnu::always_inline]] inline void for_each_in_run(const WindowRun& run, const Body& body) {
  if (run.stride == 1)
    for (Index i = 0; i < run.count; ++i) body(i, i);
  else if (run.stride == 2)
    for (Index i = 0; i < run.count; ++i) body(i, 2 * i);
  else
    for (Index i = 0; i < run.count; ++i) body(i, i * run.stride);
}

/// Returns the larger of two numbers; NaN if one of them is. Without a branch, which processors would often predict wrongly.
template <class T>
[[gnu::always_inline]] inline T larger(T a, T b) {
  const T found = is_greater(a, b) ? a : b;  // b if one of them is NaN
  return is_nan(a) ? a : found;
}
/// Returns the value if a condition holds, and 0 otherwise. Without a branch, too.
template <class T>
[[gnu::always_inline]] inline T value_if(bool condition, T value) {
  using Bits = decltype(bits_of(value));
  return std::bit_cast<T>(static_cast<Bits>(bits_of(value) & (Bits{} - static_cast<Bits>(condition))));
}

/// Whether windows are 2 x 2 positions side by side, as most models have them. Loops for these read and write each value once.
inline bool halves(const Pooling& how) {
  const auto halves_axis = [](const Windows& of) { return of.size == 2 && of.stride == 2 && of.padding == 0 && of.dilation == 1; };
  return halves_axis(how.vertical) && halves_axis(how.horizontal);
}
/// Computes the largest value of each of `count` windows, of two values in each of two rows.
template <class T>
[[gnu::always_inline]] inline void largest_of_four(const T* __restrict top, const T* __restrict bottom, Index count, T* __restrict to) {
  for (Index i = 0; i < count; ++i) to[i] = larger(larger(top[2 * i], top[2 * i + 1]), larger(bottom[2 * i], bottom[2 * i + 1]));
}
/// A row of 2 x 2 windows: the two rows of values, the largest values, and the gradients.
template <class T>
struct FourOfEach {
  const T *top, *bottom, *largest, *gradient;
  T *to_top, *to_bottom;
  Index count;

  /// Gives the gradient of each window to the first of its largest values, and 0 to the others.
  [[gnu::always_inline]] void spread() const {
    const T* __restrict a = top, * __restrict b = bottom, * __restrict most = largest, * __restrict all = gradient;
    T* __restrict to_a = to_top, * __restrict to_b = to_bottom;
    for (Index i = 0; i < count; ++i) {
      T rest = all[i];
      const T value = most[i];
      const auto part = [&rest, value](T of) {
        const bool is_largest = !(of < value);
        const T own = value_if(is_largest, rest);
        rest = value_if(!is_largest, rest);
        return own;
      };
      to_a[2 * i] = part(a[2 * i]);
      to_a[2 * i + 1] = part(a[2 * i + 1]);
      to_b[2 * i] = part(b[2 * i]);
      to_b[2 * i + 1] = part(b[2 * i + 1]);
    }
  }
};

/// Returns the number by which the sum of a window is divided.
[[gnu::always_inline]] inline Index divisor(const Pooling& how, Index row, Index column) {
  if (how.counts_padding) return how.vertical.size * how.horizontal.size;
  Index rows = 0, columns = 0;
  for (Index i = 0; i < how.vertical.size; ++i) rows += how.vertical.is_inside(how.vertical.position(row, i)) ? 1 : 0;
  for (Index j = 0; j < how.horizontal.size; ++j) columns += how.horizontal.is_inside(how.horizontal.position(column, j)) ? 1 : 0;
  return std::max<Index>(rows * columns, 1);
}

/// Copies the gradients of windows, a few at a time, and calls visit(row, first, end, copy) with the copy of those of windows first to end
/// - 1 of a row.
template <class T, class Visit>
[[gnu::always_inline]] inline void with_gradients(const ChannelWindows& windows, const T* gradient_y, const Visit& visit) {
  constexpr Index most = 256;
  std::array<T, as_size(most)> copy;
  for (Index row = 0; row < windows.rows(); ++row) {
    for (Index first = 0; first < windows.columns(); first += most) {
      const Index end = std::min(windows.columns(), first + most);
      std::copy_n(gradient_y + row * windows.columns() + first, end - first, copy.data());
      visit(row, first, end, copy.data());
    }
  }
}

}  // namespace detail

template <std::floating_point T>
void max_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  const detail::ChannelWindows windows{how};
  const bool is_halving = detail::halves(how);
  const Index width = how.horizontal.extent;
  detail::for_each_channel(cpu, x.rows * how.channels, how.positions(), [=](Index channel) {
    const Index rows = windows.rows(), columns = windows.columns();
    const T* const image = x.data + channel * how.positions();
    T* const to = y.data + channel * rows * columns;
    if (is_halving) {
      for (Index row = 0; row < rows; ++row) {
        const T* const top = image + 2 * row * width;
        detail::largest_of_four(top, top + width, columns, to + row * columns);
      }
      return;
    }
    std::fill_n(to, rows * columns, -positive_infinity<T>());
    for (Index row = 0; row < rows; ++row) {
      windows.for_each_run(row, 0, columns, [=](const detail::WindowRun& run) {
        const T* __restrict const from = image + run.position;
        T* __restrict const largest = to + row * columns + run.first;
        detail::for_each_in_run(run, [=](Index i, Index at) { largest[i] = detail::larger(largest[i], from[at]); });
      });
    }
  });
}

template <std::floating_point T>
void max_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x) {
  const detail::ChannelWindows windows{how};
  const bool is_halving = detail::halves(how);
  const Index width = how.horizontal.extent;
  detail::for_each_channel(cpu, x.rows * how.channels, how.positions(), [=](Index channel) {
    const Index columns = windows.columns(), place = channel * windows.rows() * columns;
    const T* const image = x.data + channel * how.positions();
    const T* const largest = y.data + place;
    T* const to = gradient_x.data + channel * how.positions();
    std::fill_n(to, how.positions(), T{});
    if (is_halving) {
      for (Index row = 0; row < windows.rows(); ++row) {
        const Index at = 2 * row * width, window = place + row * columns;
        detail::FourOfEach<T>{image + at, image + at + width, y.data + window, gradient_y.data + window, to + at, to + at + width, columns}
            .spread();
      }
      return;
    }
    detail::with_gradients(windows, gradient_y.data + place, [&](Index row, Index first, Index end, T* left) {
      windows.for_each_run(row, first, end, [=](const detail::WindowRun& run) {
        const T* __restrict const from = image + run.position, * __restrict const of_window = largest + row * columns + run.first;
        T* __restrict const gradient = to + run.position, * __restrict const rest = left + (run.first - first);
        detail::for_each_in_run(run, [=](Index i, Index at) {
          const T all = rest[i];
          const bool is_largest = !(from[at] < of_window[i]);
          gradient[at] += detail::value_if(is_largest, all);
          rest[i] = detail::value_if(!is_largest, all);  // a window's gradient goes to one value
        });
      });
    });
  });
}

template <std::floating_point T>
void average_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  const detail::ChannelWindows windows{how};
  detail::for_each_channel(cpu, x.rows * how.channels, how.positions(), [=](Index channel) {
    const Index rows = windows.rows(), columns = windows.columns();
    const T* const image = x.data + channel * how.positions();
    T* const to = y.data + channel * rows * columns;
    std::fill_n(to, rows * columns, T{});
    for (Index row = 0; row < rows; ++row) {
      windows.for_each_run(row, 0, columns, [=](const detail::WindowRun& run) {
        const T* const from = image + run.position;
        T* const sum = to + row * columns + run.first;
        detail::for_each_in_run(run, [=](Index i, Index at) { sum[i] += from[at]; });
      });
      for (Index column = 0; column < columns; ++column) to[row * columns + column] /= static_cast<T>(detail::divisor(how, row, column));
    }
  });
}

template <std::floating_point T>
void average_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  const detail::ChannelWindows windows{how};
  detail::for_each_channel(cpu, gradient_x.rows * how.channels, how.positions(), [=](Index channel) {
    T* const to = gradient_x.data + channel * how.positions();
    std::fill_n(to, how.positions(), T{});
    const T* const gradients = gradient_y.data + channel * windows.rows() * windows.columns();
    detail::with_gradients(windows, gradients, [&](Index row, Index first, Index end, T* terms) {
      for (Index column = first; column < end; ++column) terms[column - first] /= static_cast<T>(detail::divisor(how, row, column));
      windows.for_each_run(row, first, end, [=](const detail::WindowRun& run) {
        T* const gradient = to + run.position;
        const T* const term = terms + (run.first - first);
        detail::for_each_in_run(run, [=](Index i, Index at) { gradient[at] += term[i]; });
      });
    });
  });
}

namespace detail {

/// Calls visit(window, rows, columns) for the windows of a channel, in order.
template <class Visit>
[[gnu::always_inline]] inline void for_each_window(const AdaptivePooling& how, const Visit& visit) {
  for (Index row = 0; row < how.vertical.count; ++row)
    for (Index column = 0; column < how.horizontal.count; ++column)
      visit(row * how.horizontal.count + column, how.vertical[row], how.horizontal[column]);
}

}  // namespace detail

template <std::floating_point T>
void average_pool(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y) {
  detail::for_each_channel(cpu, x.rows * how.channels, how.positions(), [=](Index channel) {
    const T* const image = x.data + channel * how.positions();
    T* const to = y.data + channel * how.windows();
    detail::for_each_window(how, [=](Index window, const Range& rows, const Range& columns) {
      T sum{};
      for (Index row = rows.first; row < rows.end; ++row)
        for (Index column = columns.first; column < columns.end; ++column) sum += image[row * how.horizontal.extent + column];
      to[window] = sum / static_cast<T>((rows.end - rows.first) * (columns.end - columns.first));
    });
  });
}

template <std::floating_point T>
void average_pool_backward(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::for_each_channel(cpu, gradient_x.rows * how.channels, how.positions(), [=](Index channel) {
    const T* const gradient = gradient_y.data + channel * how.windows();
    T* const to = gradient_x.data + channel * how.positions();
    std::fill_n(to, how.positions(), T{});
    detail::for_each_window(how, [=](Index window, const Range& rows, const Range& columns) {
      const T term = gradient[window] / static_cast<T>((rows.end - rows.first) * (columns.end - columns.first));
      for (Index row = rows.first; row < rows.end; ++row)
        for (Index column = columns.first; column < columns.end; ++column) to[row * how.horizontal.extent + column] += term;
    });
  });
}

}  // namespace pdp::cpu
