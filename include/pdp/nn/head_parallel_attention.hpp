#pragma once

#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// A MultiHeadAttention with heads divided over the ranks of a tensor-parallel group. Each rank has some heads of keys, with the heads of
/// queries that share them. It takes all of x and gives one term of the sum y. All ranks have the bias of the output, and the first adds
/// it. divided() sets a rank's part; until then the part is the whole. Shoeybi et al., "Megatron-LM", arXiv:1909.08053.
struct HeadParallelAttention : MultiHeadAttention {
  static constexpr const char* name = "HeadParallelAttention";
  using forgets_output = HeadParallelAttention;
  static constexpr Placement takes = Placement::replicated, gives = Placement::partial;

  Part part{};

  constexpr HeadParallelAttention(Index width, Index heads, const AttentionOptions& options = {})
      : MultiHeadAttention{width, heads, options} {}
  constexpr explicit HeadParallelAttention(const MultiHeadAttention& whole) : MultiHeadAttention{whole} {}

  /// Throws ShapeError if the heads of keys cannot be divided evenly.
  [[nodiscard]] constexpr HeadParallelAttention divided(Part of, const Path& at) const {
    check_division(options().key_heads, of.count, at, name, "heads of keys");
    return {*this, of};
  }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    parameters_of(part, path, offset, visit);
  }
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    MultiHeadAttention::forward(device, state, x, y, saved, options().bias && part.index == 0);
  }

 private:
  constexpr HeadParallelAttention(const HeadParallelAttention& whole, Part of) : MultiHeadAttention{whole, of.count}, part{of} {}
};
static_assert(PlacedLayer<HeadParallelAttention>);

}  // namespace pdp::nn
