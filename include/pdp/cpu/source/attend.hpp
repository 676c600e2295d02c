#pragma once

/// Definitions for pdp/cpu/attend.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>

#include <pdp/core/attention.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/attend.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/simd/lanes.hpp>
#include <pdp/cpu/source/eigen_product.hpp>
#include <pdp/cpu/source/exponentials.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

namespace detail {

/// A block of a matrix in memory, or its transpose.
template <class T>
struct Block {
  T* data;
  Index stride;  // elements from the start of a row in memory to that of the next
};

/// Computes c (+)= left right on one thread. Left and Right are as for add_product(). Does not throw, as callers run on several threads.
template <int Left, int Right, class T>
void block_product(const Cpu& cpu, Block<const T> left, Block<const T> right, Block<T> c, const ProductSize& size, bool accumulate) {
  if constexpr (std::same_as<T, float>) {
    if (has_onednn(cpu) &&
        onednn::block_product({left.data, left.stride, Left == Eigen::ColMajor}, {right.data, right.stride, Right == Eigen::ColMajor},
                              c.data, c.stride, size.rows, size.cols, size.depth, accumulate))
      return;
  }
  if (!accumulate)
    for (Index row = 0; row < size.rows; ++row) std::fill_n(c.data + row * c.stride, size.cols, T{});
  add_product<Left, Right>(left.data, left.stride, right.data, right.stride, c.data, c.stride, size);
}

/// Products of some queries of a head with some keys, on the stack. Row i is that of query first_query + i.
template <class T>
struct Scores {
  static constexpr Index most_queries = 64, most_keys = 256;
  Index first_query, queries, first_key, keys;
  alignas(64) std::array<T, as_size(most_queries* most_keys)> values;

  [[nodiscard]] T* row(Index query) { return values.data() + query * keys; }
  [[nodiscard]] Block<T> block() { return {values.data(), keys}; }
  [[nodiscard]] Block<const T> read() const { return {values.data(), keys}; }
  /// Returns the number of keys of the block that a query attends to: at least one, as blocks of keys begin at multiples of those of
  /// queries.
  [[nodiscard]] Index attended(const Attention& how, Index query) const {
    return std::clamp<Index>(how.keys(first_query + query) - first_key, 0, keys);
  }
};

/// Calls visit(first, count) for blocks of at most `most` positions that together are positions `begin` to `end` - 1.
template <class Visit>
void for_each_block(Index begin, Index end, Index most, const Visit& visit) {
  for (Index first = begin; first < end; first += most) visit(first, std::min(most, end - first));
}

/// The heads of one sample, as blocks of matrices.
template <class T>
struct HeadsOfSample {
  const Attention& how;
  T* x;
  [[nodiscard]] Block<T> queries(Index head, Index first) const { return {x + first * how.row() + how.query(head), how.row()}; }
  [[nodiscard]] Block<T> keys(Index key_head, Index first) const { return {x + first * how.row() + how.key(key_head), how.row()}; }
  [[nodiscard]] Block<T> values(Index key_head, Index first) const { return {x + first * how.row() + how.value(key_head), how.row()}; }
};

/// Computes to = exp(scale x - less), and returns the sum.
template <class V, class T>
[[gnu::always_inline]] inline T scaled_exponentials(const T* x, T scale, T less, Index count, T* to) {
  V even, odd;  // a compiler must not reorder the terms of a single sum
  Index i = 0;
  const auto at = [=](const V& values) { return exp(values * scale - less); };
  for (; i + 2 * V::count <= count; i += 2 * V::count) {
    const V first = at(V::load(x + i)), second = at(V::load(x + i + V::count));
    first.store(to + i);
    second.store(to + i + V::count);
    even = even + first;
    odd = odd + second;
  }
  T rest{};
  for (; i < count; i += V::count) {
    const Index some = std::min<Index>(V::count, count - i);
    at(V::load(x + i, some)).store(to + i, some);
    for (Index lane = 0; lane < some; ++lane) rest += to[i + lane];
  }
  return (even + odd).sum() + rest;
}

/// The softmax of the rows of a head so far, for some queries: the largest score and the sum of exp(score - largest).
template <class T>
struct RunningSoftmax {
  std::array<T, as_size(Scores<T>::most_queries)> largest, sum;
};

/// Replaces scores by exp(scale score - largest). `largest` is that of all blocks of keys so far; what the blocks before have added to `y`
/// and `running` is scaled to it. `is_first`: there are none.
template <class T>
void add_block(const Cpu& cpu, const Attention& how, Scores<T>& scores, RunningSoftmax<T>& running, Block<T> y, bool is_first) {
  Scores<T>* const block = &scores;
  RunningSoftmax<T>* const softmax = &running;
  const Attention of = how;
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    const T scale = static_cast<T>(of.scale());
    for (Index query = 0; query < block->queries; ++query) {
      T* const row = block->row(query);
      const Index count = block->attended(of, query);
      T &largest_so_far = softmax->largest[as_size(query)], &sum = softmax->sum[as_size(query)];
      std::fill(row + count, row + block->keys, T{});
      const T of_block = largest<V>(row, count) * scale;
      const T most = is_first || is_greater(of_block, largest_so_far) ? of_block : largest_so_far;
      const T found = scaled_exponentials<V>(row, scale, most, count, row);
      if (is_first) {
        sum = found;
      } else {
        const T factor = std::exp(largest_so_far - most);
        sum = sum * factor + found;
        T* const out = y.data + query * y.stride;
        transform<V>(out, of.width, out, [factor](const auto& value) { return value * factor; });
      }
      largest_so_far = most;
    }
  });
}

/// Divides the rows of y by the sums, and writes the logarithms of the sums of exponentials.
template <class T>
void finish_rows(const Cpu& cpu, const Attention& how, Index queries, const RunningSoftmax<T>& running, Block<T> y, T* sums) {
  const RunningSoftmax<T>* const softmax = &running;
  const Index width = how.width, stride = how.heads * attention_sums;
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    for (Index query = 0; query < queries; ++query) {
      const T sum = softmax->sum[as_size(query)], factor = 1 / sum;
      T* const out = y.data + query * y.stride;
      transform<V>(out, width, out, [factor](const auto& value) { return value * factor; });
      sums[query * stride] = softmax->largest[as_size(query)] + std::log(sum);
      sums[query * stride + 1] = T{};
    }
  });
}

/// `y` and `sums` are those of the head's first position.
template <class T>
void attend_head(const Cpu& cpu, const Attention& how, const HeadsOfSample<const T>& sample, Index head, Block<T> y, T* sums) {
  const Index key_head = head / how.of_key_head();
  Scores<T> scores;
  RunningSoftmax<T> running;
  for_each_block(0, how.positions, Scores<T>::most_queries, [&](Index first, Index queries) {
    const Block<T> out{y.data + first * y.stride, y.stride};
    for_each_block(0, how.keys(first + queries - 1), Scores<T>::most_keys, [&](Index first_key, Index keys) {
      scores.first_query = first, scores.queries = queries, scores.first_key = first_key, scores.keys = keys;
      block_product<Eigen::RowMajor, Eigen::ColMajor>(cpu, sample.queries(head, first), sample.keys(key_head, first_key), scores.block(),
                                                      {queries, keys, how.width}, false);
      add_block(cpu, how, scores, running, out, first_key == 0);
      block_product<Eigen::RowMajor, Eigen::RowMajor>(cpu, scores.read(), sample.values(key_head, first_key), out,
                                                      {queries, how.width, keys}, first_key > 0);
    });
    finish_rows(cpu, how, queries, running, out, sums + first * how.heads * attention_sums);
  });
}

/// Replaces products of queries and keys by the weights of the values, w = exp(scale product - sum), and the gradients of w by those of the
/// products, w (gradient - mean) scale. mean[i]: the sum of w times its gradient over all keys, for query i.
template <class T>
void weights_and_gradients(const Cpu& cpu, const Attention& how, Scores<T>& products, Scores<T>& gradients, const T* sums, const T* mean) {
  Scores<T>*const weights = &products, *const of_weights = &gradients;
  const Attention of = how;
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    const T scale = static_cast<T>(of.scale());
    for (Index query = 0; query < weights->queries; ++query) {
      T *const weight = weights->row(query), *const gradient = of_weights->row(query);
      const Index count = weights->attended(of, query);
      const T* const own = sums + query * of.heads * attention_sums;
      scaled_exponentials<V>(weight, scale, own[0] + own[1], count, weight);
      std::fill(weight + count, weight + weights->keys, T{});
      std::fill(gradient + count, gradient + weights->keys, T{});
      const T less = mean[query];
      Index i = 0;
      for (; i + V::count <= count; i += V::count) (V::load(weight + i) * (V::load(gradient + i) - less) * scale).store(gradient + i);
      for (; i < count; ++i) gradient[i] = weight[i] * (gradient[i] - less) * scale;
    }
  });
}

/// Writes the products of the rows of two matrices, the means of weights_and_gradients().
template <class T>
void row_products(const Cpu& cpu, Block<const T> a, Block<const T> b, Index rows, Index width, T* products) {
  with_simd(cpu.simd(), [=]<Simd S>() {
    using V = Lanes<T, S>;
    for (Index row = 0; row < rows; ++row) {
      const T *const left = a.data + row * a.stride, *const right = b.data + row * b.stride;
      V sum;
      Index i = 0;
      for (; i + V::count <= width; i += V::count) sum = sum + V::load(left + i) * V::load(right + i);
      T total = sum.sum();
      for (; i < width; ++i) total += left[i] * right[i];
      products[row] = total;
    }
  });
}

/// `y` and `gradient_y` are those of the sample, `sums` too. Computes all heads that share keys, one after another, as they add to the same
/// gradients.
template <class T>
void attend_backward_heads(const Cpu& cpu, const Attention& how, const HeadsOfSample<const T>& sample, Index key_head, const T* y,
                           const T* gradient_y, const T* sums, const HeadsOfSample<T>& gradients) {
  Scores<T> weights, of_weights;
  std::array<T, as_size(Scores<T>::most_queries)> mean;
  for (Index head = key_head * how.of_key_head(); head < (key_head + 1) * how.of_key_head(); ++head) {
    for_each_block(0, how.positions, Scores<T>::most_queries, [&](Index first, Index queries) {
      const Index at = first * how.out() + how.output(head);
      const Block<const T> out{y + at, how.out()}, of_out{gradient_y + at, how.out()};
      row_products(cpu, out, of_out, queries, how.width, mean.data());
      const T* const own_sums = sums + (first * how.heads + head) * attention_sums;
      for_each_block(0, how.keys(first + queries - 1), Scores<T>::most_keys, [&](Index first_key, Index keys) {
        for (Scores<T>* each : {&weights, &of_weights})
          each->first_query = first, each->queries = queries, each->first_key = first_key, each->keys = keys;
        block_product<Eigen::RowMajor, Eigen::ColMajor>(cpu, sample.queries(head, first), sample.keys(key_head, first_key), weights.block(),
                                                        {queries, keys, how.width}, false);
        block_product<Eigen::RowMajor, Eigen::ColMajor>(cpu, of_out, sample.values(key_head, first_key), of_weights.block(),
                                                        {queries, keys, how.width}, false);
        weights_and_gradients(cpu, how, weights, of_weights, own_sums, mean.data());
        block_product<Eigen::ColMajor, Eigen::RowMajor>(cpu, weights.read(), of_out, gradients.values(key_head, first_key),
                                                        {keys, how.width, queries}, true);
        block_product<Eigen::ColMajor, Eigen::RowMajor>(cpu, of_weights.read(), sample.queries(head, first),
                                                        gradients.keys(key_head, first_key), {keys, how.width, queries}, true);
        block_product<Eigen::RowMajor, Eigen::RowMajor>(cpu, of_weights.read(), sample.keys(key_head, first_key),
                                                        gradients.queries(head, first), {queries, how.width, keys}, first_key > 0);
      });
    });
  }
}

}  // namespace detail

template <std::floating_point T>
void attend(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums) {
  in_parts(cpu, x.rows * how.heads, 1, [&](Index begin, Index end) {
    for (Index item = begin; item < end; ++item) {
      const Index row = item / how.heads, head = item % how.heads;
      detail::attend_head<T>(cpu, how, {how, x.row(row)}, head, {y.row(row) + how.output(head), how.out()},
                             sums + (row * how.positions * how.heads + head) * attention_sums);
    }
  });
}

template <std::floating_point T>
void attend_backward(const Cpu& cpu, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y, const T* sums,
                     Matrix<T> gradient_x) {
  in_parts(cpu, x.rows * how.key_heads, 1, [&](Index begin, Index end) {
    for (Index item = begin; item < end; ++item) {
      const Index row = item / how.key_heads, key_head = item % how.key_heads;
      T* const gradient = gradient_x.row(row);
      for (Index position = 0; position < how.positions; ++position)
        for (const Index column : {how.key(key_head), how.value(key_head)})
          std::fill_n(gradient + position * how.row() + column, how.width, T{});
      detail::attend_backward_heads<T>(cpu, how, {how, x.row(row)}, key_head, y.row(row), gradient_y.row(row),
                                       sums + row * how.positions * how.heads * attention_sums, {how, gradient});
    }
  });
}

template <std::floating_point T>
void rotate(const Cpu& cpu, const Attention& how, const Rotation& rotation, Matrix<T> x) {
  in_parts(cpu, how.positions, 1, [&](Index begin, Index end) {
    const Index pairs = how.width / 2;
    for (Index position = begin; position < end; ++position) {
      for (Index i = 0; i < pairs; ++i) {
        const double angle = rotation.sign() * as_double(position) * std::pow(rotation.base, rotation.exponent(i, how.width));
        const auto cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
        for (Index row = 0; row < x.rows; ++row) {
          for (Index which = 0; which < how.heads + how.key_heads; ++which) {
            T* const pair = x.row(row) + position * how.row() + how.query_or_key(which) + i;
            const T first = pair[0], second = pair[pairs];
            pair[0] = first * cosine - second * sine;
            pair[pairs] = first * sine + second * cosine;
          }
        }
      }
    }
  });
}

}  // namespace pdp::cpu
