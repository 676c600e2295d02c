#pragma once

/// Definitions for pdp/cpu/bfloat16.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pdp/core/attention.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/attend.hpp>
#include <pdp/cpu/bfloat16.hpp>
#include <pdp/cpu/convolve.hpp>
#include <pdp/cpu/float_rows.hpp>
#include <pdp/cpu/loss.hpp>
#include <pdp/cpu/pool.hpp>
#include <pdp/cpu/softmax.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// Computes y from x row by row, by compute(x, y) on floats.
template <class Compute>
void map_rows(const Cpu& cpu, Matrix<const BFloat16> x, Matrix<BFloat16> y, const Compute& compute) {
  const FloatRows rows{cpu, x.rows, x.cols + y.cols};
  rows.for_each_block([&](FloatBlock& block) {
    const Matrix<const float> in = block.widen(x);
    const Matrix<float> out = block.room_for(y);
    compute(in, out);
    block.narrow(out, y);
  });
}
/// Computes z from x and y.
template <class Compute>
void map_rows(const Cpu& cpu, Matrix<const BFloat16> x, Matrix<const BFloat16> y, Matrix<BFloat16> z, const Compute& compute) {
  const FloatRows rows{cpu, x.rows, x.cols + y.cols + z.cols};
  rows.for_each_block([&](FloatBlock& block) {
    const Matrix<const float> first = block.widen(x), second = block.widen(y);
    const Matrix<float> out = block.room_for(z);
    compute(first, second, out);
    block.narrow(out, z);
  });
}

}  // namespace detail

template <std::same_as<BFloat16> T>
void fill_uniform(const Cpu&, random::Key key, double bound, const random::Elements& elements, std::span<T> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = BFloat16{random::uniform_between<float>(key, bound, elements[as_index(i)])};
}

template <std::same_as<BFloat16> T>
void softmax(const Cpu& cpu, Matrix<const T> x, Matrix<T> y) {
  detail::map_rows(cpu, x, y, [&](auto in, auto out) { softmax(cpu, in, out); });
}
template <std::same_as<BFloat16> T>
void softmax_backward(const Cpu& cpu, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::map_rows(cpu, y, gradient_y, gradient_x, [&](auto out, auto of_out, auto of_in) { softmax_backward(cpu, out, of_out, of_in); });
}

// Each sum is stored as two numbers: the nearest one of 16 bits, and what it lacks.
template <std::same_as<BFloat16> T>
void attend(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums) {
  const Matrix<BFloat16> all{sums, x.rows, how.positions * how.heads * attention_sums};
  const detail::FloatRows rows{cpu, x.rows, x.cols + y.cols + all.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> in = block.widen(x);
    const Matrix<float> out = block.room_for(y), own = block.room_for(all);
    attend(cpu, how, in, out, own.data);
    block.narrow(out, y);
    const Matrix<BFloat16> stored = block.rows_of(all);
    for (Index i = 0; i < own.size(); i += attention_sums) {
      stored.data[i] = BFloat16{own.data[i]};
      stored.data[i + 1] = BFloat16{own.data[i] - stored.data[i]};
    }
  });
}
template <std::same_as<BFloat16> T>
void attend_backward(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y, const T* sums,
                     Matrix<T> gradient_x) {
  const Matrix<const BFloat16> all{sums, x.rows, how.positions * how.heads * attention_sums};
  const detail::FloatRows rows{cpu, x.rows, 2 * (x.cols + y.cols) + all.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> in = block.widen(x), out = block.widen(y), of_out = block.widen(gradient_y);
    const Matrix<float> of_in = block.room_for(gradient_x);
    attend_backward(cpu, how, in, out, of_out, block.widen(all).data, of_in);
    block.narrow(of_in, gradient_x);
  });
}
template <std::same_as<BFloat16> T>
void rotate(const Cpu& cpu, const Attention& how, const Rotation& rotation, Matrix<T> x) {
  const detail::FloatRows rows{cpu, x.rows, x.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<float> some = block.copy_of(x);
    rotate(cpu, how, rotation, some);
    block.narrow(some, x);
  });
}

template <std::same_as<BFloat16> T>
void convolve(const Cpu& cpu, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y) {
  const Index weights = how.filters * how.depth();
  detail::FloatRows rows{cpu, x.rows, x.cols + y.cols, weights + how.filters};
  const float *const factors = rows.widen(weight, weights), *const terms = rows.widen(bias, how.filters);
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> in = block.widen(x);
    const Matrix<float> out = block.room_for(y);
    convolve(cpu, how, in, factors, terms, out);
    block.narrow(out, y);
  });
}
template <std::same_as<BFloat16> T>
void convolve_backward_input(const Cpu& cpu, const Convolution& how, const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  const Index weights = how.filters * how.depth();
  detail::FloatRows rows{cpu, gradient_x.rows, gradient_x.cols + gradient_y.cols, weights};
  const float* const factors = rows.widen(weight, weights);
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> of_out = block.widen(gradient_y);
    const Matrix<float> of_in = block.room_for(gradient_x);
    convolve_backward_input(cpu, how, factors, of_out, of_in);
    block.narrow(of_in, gradient_x);
  });
}
template <std::same_as<BFloat16> T>
void convolve_backward_weight(const Cpu& cpu, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y, float* gradient_weight,
                              float* gradient_bias, bool accumulate) {
  const detail::FloatRows rows{cpu, x.rows, x.cols + gradient_y.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> in = block.widen(x), of_out = block.widen(gradient_y);
    convolve_backward_weight(cpu, how, in, of_out, gradient_weight, gradient_bias, accumulate || block.first() > 0);
  });
}

template <std::same_as<BFloat16> T>
void max_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  detail::map_rows(cpu, x, y, [&](auto in, auto out) { max_pool(cpu, how, in, out); });
}
template <std::same_as<BFloat16> T>
void max_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x) {
  const detail::FloatRows rows{cpu, x.rows, 2 * (x.cols + y.cols)};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> in = block.widen(x), out = block.widen(y), of_out = block.widen(gradient_y);
    const Matrix<float> of_in = block.room_for(gradient_x);
    max_pool_backward(cpu, how, in, out, of_out, of_in);
    block.narrow(of_in, gradient_x);
  });
}
template <std::same_as<BFloat16> T>
void average_pool(const Cpu& cpu, const Pooling& how, Matrix<const T> x, Matrix<T> y) {
  detail::map_rows(cpu, x, y, [&](auto in, auto out) { average_pool(cpu, how, in, out); });
}
template <std::same_as<BFloat16> T>
void average_pool(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y) {
  detail::map_rows(cpu, x, y, [&](auto in, auto out) { average_pool(cpu, how, in, out); });
}
template <std::same_as<BFloat16> T>
void average_pool_backward(const Cpu& cpu, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::map_rows(cpu, gradient_y, gradient_x, [&](auto of_out, auto of_in) { average_pool_backward(cpu, how, of_out, of_in); });
}
template <std::same_as<BFloat16> T>
void average_pool_backward(const Cpu& cpu, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x) {
  detail::map_rows(cpu, gradient_y, gradient_x, [&](auto of_out, auto of_in) { average_pool_backward(cpu, how, of_out, of_in); });
}

template <std::same_as<BFloat16> T>
void softmax_cross_entropy(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* row_scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored, double smoothing, const ClassWeights& weights) {
  check_labels(classes.first(as_size(logits.rows)), logits.cols, ignored);  // whose error counts all rows
  const detail::FloatRows rows{cpu, logits.rows, 2 * logits.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> some = block.widen(logits);
    const Matrix<float> slope = block.room_for(gradient);
    softmax_cross_entropy(cpu, some, classes.subspan(as_size(block.first())), row_scale, slope, sums, ignored, smoothing, weights);
    block.narrow(slope, gradient);
  });
}
template <std::same_as<BFloat16> T>
void softmax_part(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<float> part, Index ignored, double smoothing, const ClassWeights& weights) {
  check_labels(classes.first(as_size(logits.rows)), columns, ignored);
  const detail::FloatRows rows{cpu, logits.rows, logits.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    softmax_part(cpu, block.widen(logits), classes.subspan(as_size(block.first())), first, columns, block.rows_of(part), ignored, smoothing,
                 weights);
  });
}
template <std::same_as<BFloat16> T>
void softmax_cross_entropy_of_parts(const Cpu& cpu, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const float> parts, const double* row_scale, Matrix<T> gradient, LossSums* sums, Index ignored,
                                    double smoothing, Index columns, const ClassWeights& weights) {
  if (logits.rows == 0) return;
  const Index ranks = parts.rows / logits.rows;
  const detail::FloatRows rows{cpu, logits.rows, 2 * logits.cols + ranks * parts.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> some = block.widen(logits);
    const Matrix<float> slope = block.room_for(gradient), room = block.room(ranks * parts.cols);
    const Matrix<float> of_some{room.data, ranks * block.count(), parts.cols};
    for (Index rank = 0; rank < ranks; ++rank)
      std::copy_n(parts.row(rank * logits.rows + block.first()), block.count() * parts.cols, of_some.row(rank * block.count()));
    softmax_cross_entropy_of_parts(cpu, some, classes.subspan(as_size(block.first())), first, Matrix<const float>{of_some}, row_scale,
                                   slope, sums, ignored, smoothing, columns, weights);
    block.narrow(slope, gradient);
  });
}
template <std::same_as<BFloat16> T>
void squared_error(const Cpu& cpu, Matrix<const T> output, Matrix<const float> target, const double* row_scale, Matrix<T> gradient,
                   LossSums* sums, bool ignores_nan) {
  const detail::FloatRows rows{cpu, output.rows, 2 * output.cols};
  rows.for_each_block([&](detail::FloatBlock& block) {
    const Matrix<const float> some = block.widen(output);
    const Matrix<float> slope = block.room_for(gradient);
    squared_error(cpu, some, block.rows_of(target), row_scale, slope, sums, ignores_nan);
    block.narrow(slope, gradient);
  });
}

}  // namespace pdp::cpu
