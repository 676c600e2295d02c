#pragma once

#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

/// An Embedding with tokens divided over the ranks of a tensor-parallel group. Each rank has the vectors of some tokens. It takes all
/// tokens and gives one term of the sum y: the vectors of its own tokens, and zeros for the others. The sizes are those of the whole layer.
/// divided() sets a rank's part; until then the part is the whole.
struct VocabularyParallelEmbedding : Embedding {
  static constexpr const char* name = "VocabularyParallelEmbedding";
  using forgets_output = VocabularyParallelEmbedding;
  static constexpr Placement takes = Placement::invariant, gives = Placement::partial;

  Part part{};

  [[nodiscard]] constexpr VocabularyParallelEmbedding divided(Part of, const Path& at) const {
    check_division(vocabulary, of.count, at, name, "tokens");
    VocabularyParallelEmbedding own = *this;
    own.part = of;
    return own;
  }
  [[nodiscard]] constexpr Index parameter_elements() const { return padded_parameter(tokens_of_rank() * width); }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    Embedding::parameters(path, offset, [&](Parameter parameter) {
      parameter.rows = tokens_of_rank();
      parameter.row_part = part;
      visit(parameter);
    });
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const std::int32_t> tokens, Matrix<T> y, T*) const {
    embed(device, tokens, rows(), Matrix<const T>{state.value, tokens_of_rank(), width}, y);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const std::int32_t> tokens, Matrix<const T>,
                       Matrix<const T> gradient_y, T*) const {
    embed_backward(device, tokens, rows(), gradient_y, Matrix<Accumulated<T>>{state.gradient, tokens_of_rank(), width}, state.accumulate);
  }

 private:
  [[nodiscard]] constexpr Index tokens_of_rank() const { return vocabulary / part.count; }
  [[nodiscard]] constexpr TokenRows rows() const { return {part.index * tokens_of_rank(), vocabulary}; }
};
static_assert(PlacedLayer<VocabularyParallelEmbedding> && takes_tokens<VocabularyParallelEmbedding>);

}  // namespace pdp::nn
