#pragma once

/// Definitions for pdp/cpu/convolve.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <concepts>

#include <pdp/core/cast.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/convolve.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/convolution.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/source/eigen_product.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Some windows of an image, as a matrix with a column for each window. A row has the values at one position of one channel of the windows.
/// It fits on the stack.
template <class T>
struct Patches {
  static constexpr Index most_rows = 128, most_values = 16 * 1024;
  Range rows, windows;
  std::array<T, as_size(most_values)> values;

  [[nodiscard]] Index count() const { return windows.end - windows.first; }
  /// Calls visit(patches) for parts that together have all windows and the rows of.first to of.end - 1. Their rows are the innermost loop.
  template <class Visit>
  void for_each(const Convolution& how, const Range& of, const Visit& visit) {
    const Index at_once = most_values / std::min(most_rows, of.end - of.first);
    for (windows = {}; windows.end < how.windows();) {
      windows = {windows.end, std::min(windows.end + at_once, how.windows())};
      for (rows = {of.first, of.first}; rows.end < of.end;) {
        rows = {rows.end, std::min(rows.end + most_rows, of.end)};
        visit(*this);
      }
    }
  }

  /// Calls visit(values, position, count, stride) for runs of values. They lie in one row of an image, `stride` apart from `position` on.
  /// If `position` is -1, they lie outside it. The image begins with the first channel of a group.
  template <class Visit>
  void for_each_run(const Convolution& how, const Visit& visit) {
    const Windows &vertical = how.vertical, &horizontal = how.horizontal;
    const Index columns = horizontal.count();
    T* to = values.data();
    for (Index row = rows.first; row < rows.end; ++row) {
      const Index i = row / horizontal.size % vertical.size, j = row % horizontal.size;
      const Index channel = row / how.kernel() * how.positions();
      const Range inside = horizontal.inside(j);
      for (Index window = windows.first; window < windows.end;) {
        const Index line = window / columns, first = window % columns, end = std::min(columns, first + windows.end - window);
        const Index y = vertical.position(line, i);
        const Index begin = vertical.is_inside(y) ? std::clamp(inside.first, first, end) : end;
        const Index behind = std::clamp(inside.end, begin, end);
        if (begin > first) visit(to, Index{-1}, begin - first, horizontal.stride);
        if (behind > begin)
          visit(to + (begin - first), channel + y * horizontal.extent + horizontal.position(begin, j), behind - begin, horizontal.stride);
        if (end > behind) visit(to + (behind - first), Index{-1}, end - behind, horizontal.stride);
        to += end - first;
        window += end - first;
      }
    }
  }
  /// Copies the values from an image. Those outside are 0.
  void copy_from(const Convolution& how, const T* image) {
    for_each_run(how, [image](T* to, Index position, Index count, Index stride) {
      if (position < 0)
        std::fill_n(to, count, T{});
      else if (stride == 1)
        std::copy_n(image + position, count, to);
      else
        for (Index i = 0; i < count; ++i) to[i] = image[position + i * stride];
    });
  }
  /// Adds the values to an image.
  void add_to(const Convolution& how, T* image) {
    for_each_run(how, [image](const T* from, Index position, Index count, Index stride) {
      if (position < 0) return;
      for (Index i = 0; i < count; ++i) image[position + i * stride] += from[i];
    });
  }
};

/// Calls visit(image of x, image of y, number of the group) for all groups of all rows, on all threads. Of the matrices, only addresses and
/// numbers of rows are used.
template <class X, class Y, class Visit>
void for_each_group(const Cpu& cpu, const Convolution& how, Matrix<X> x, Matrix<Y> y, const Visit& visit) {
  in_parts(cpu, x.rows * how.groups, 1, [&](Index begin, Index end) {
    for (Index each = begin; each < end; ++each)
      visit(x.data + each * how.channels_of_group() * how.positions(), y.data + each * how.filters_of_group() * how.windows(),
            each % how.groups);
  });
}

}  // namespace detail

template <std::floating_point T>
void convolve(const Cpu& cpu, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y) {
  if (y.size() == 0) return;
  if constexpr (std::same_as<T, float>)
    if (has_onednn(cpu) && onednn::convolve(how, x.rows, x.data, weight, bias, y.data, cpu.threads)) return;
  const Index filters = how.filters_of_group(), depth = how.depth(), windows = how.windows();
  detail::for_each_group(cpu, how, x, y, [=](const T* image, T* to, Index group) {
    for (Index filter = 0; filter < filters; ++filter)
      std::fill_n(to + filter * windows, windows, bias != nullptr ? bias[group * filters + filter] : T{});
    const T* const of_group = weight + group * filters * depth;
    detail::Patches<T> patches;
    patches.for_each(how, {0, depth}, [=](detail::Patches<T>& some) {
      some.copy_from(how, image);
      detail::add_product<Eigen::RowMajor, Eigen::RowMajor>(of_group + some.rows.first, depth, some.values.data(), some.count(),
                                                            to + some.windows.first, windows,
                                                            {filters, some.count(), some.rows.end - some.rows.first});
    });
  });
}

template <std::floating_point T>
void convolve_backward_input(const Cpu& cpu, const Convolution& how, const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  if (gradient_x.size() == 0) return;
  if constexpr (std::same_as<T, float>)
    if (has_onednn(cpu) && onednn::convolve_backward_input(how, gradient_x.rows, weight, gradient_y.data, gradient_x.data, cpu.threads))
      return;
  const Index filters = how.filters_of_group(), depth = how.depth(), windows = how.windows();
  detail::for_each_group(cpu, how, gradient_x, gradient_y, [=](T* image, const T* gradient, Index group) {
    std::fill_n(image, how.channels_of_group() * how.positions(), T{});
    const T* const of_group = weight + group * filters * depth;
    detail::Patches<T> patches;
    patches.for_each(how, {0, depth}, [=](detail::Patches<T>& some) {
      const detail::ProductSize size{some.rows.end - some.rows.first, some.count(), filters};
      std::fill_n(some.values.data(), size.rows * size.cols, T{});
      detail::add_product<Eigen::ColMajor, Eigen::RowMajor>(of_group + some.rows.first, depth, gradient + some.windows.first, windows,
                                                            some.values.data(), size.cols, size);
      some.add_to(how, image);
    });
  });
}

namespace detail {

/// Adds up the gradients of the biases. A filter's sums over images are added in order, so they do not depend on the number of threads.
template <class T>
void add_bias_gradients(const Cpu& cpu, const Convolution& how, Matrix<const T> gradient_y, T* gradient_bias) {
  const Index windows = how.windows();
  in_parts(cpu, how.filters, least_part / std::max<Index>(gradient_y.rows * windows, 1) + 1, [&](Index begin, Index end) {
    for (Index filter = begin; filter < end; ++filter)
      for (Index row = 0; row < gradient_y.rows; ++row) gradient_bias[filter] += sum_of(gradient_y.row(row) + filter * windows, windows);
  });
}

}  // namespace detail

template <std::floating_point T>
void convolve_backward_weight(const Cpu& cpu, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y, T* gradient_weight,
                              T* gradient_bias, bool accumulate) {
  const Index filters = how.filters_of_group(), depth = how.depth(), windows = how.windows();
  if constexpr (std::same_as<T, float>)
    if (gradient_y.size() > 0 && has_onednn(cpu) &&
        onednn::convolve_backward_weight(how, x.rows, x.data, gradient_y.data, gradient_weight, gradient_bias, accumulate, cpu.threads))
      return;
  if (!accumulate) {
    std::fill_n(gradient_weight, how.filters * depth, T{});
    if (gradient_bias != nullptr) std::fill_n(gradient_bias, how.filters, T{});
  }
  if (gradient_y.size() == 0) return;
  if (gradient_bias != nullptr) detail::add_bias_gradients(cpu, how, gradient_y, gradient_bias);
  // Threads take some rows of the windows' matrix for all images, so no sum depends on the number of threads.
  constexpr Index most_rows = detail::Patches<T>::most_rows;
  const Index parts = (depth + most_rows - 1) / most_rows;
  in_parts(cpu, how.groups * parts, 1, [&](Index begin, Index end) {
    detail::Patches<T> patches;
    for (Index each = begin; each < end; ++each) {
      const Index group = each / parts, first = each % parts * most_rows;
      for (Index row = 0; row < x.rows; ++row) {
        const T* const image = x.row(row) + group * how.channels_of_group() * how.positions();
        const T* const gradient = gradient_y.row(row) + group * filters * windows;
        patches.for_each(how, {first, std::min(first + most_rows, depth)}, [&](detail::Patches<T>& some) {
          some.copy_from(how, image);
          detail::add_product<Eigen::RowMajor, Eigen::ColMajor>(gradient + some.windows.first, windows, some.values.data(), some.count(),
                                                                gradient_weight + group * filters * depth + first, depth,
                                                                {filters, some.rows.end - some.rows.first, some.count()});
        });
      }
    }
  });
}

}  // namespace pdp::cpu
