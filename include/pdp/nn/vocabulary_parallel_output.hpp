#pragma once

#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/placement.hpp>
#include <pdp/nn/tied_output.hpp>

namespace pdp::nn {

/// A TiedOutput with tokens divided over the ranks of a tensor-parallel group, for a model that begins with a VocabularyParallelEmbedding.
/// Each rank takes all of x, and gives the columns of y of those tokens of which it has the vectors. The sizes are those of the whole
/// layer. divided() sets a rank's part; until then the part is the whole.
struct VocabularyParallelOutput : TiedOutput {
  static constexpr const char* name = "VocabularyParallelOutput";
  using forgets_output = VocabularyParallelOutput;
  static constexpr Placement takes = Placement::replicated, gives = Placement::sharded;

  Part part{};

  [[nodiscard]] constexpr VocabularyParallelOutput divided(Part of, const Path& at) const {
    check_division(vocabulary, of.count, at, name, "tokens");
    VocabularyParallelOutput own = *this;
    own.part = of;
    return own;
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return own().output(input); }
  [[nodiscard]] constexpr Index parameter_elements() const { return own().parameter_elements(); }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return own().products(input); }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    TiedOutput::parameters(path, offset, [&](Parameter parameter) {
      parameter.rows = own().vocabulary;
      parameter.row_part = part;
      visit(parameter);
    });
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    own().forward(device, state, x, y, saved);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T* saved) const {
    own().backward_input(device, state, x, y, gradient_y, gradient_x, saved);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       T* saved) const {
    own().backward_weight(device, state, x, y, gradient_y, saved);
  }

 private:
  /// Returns the layer with the tokens of this rank.
  [[nodiscard]] constexpr TiedOutput own() const { return {vocabulary / part.count, width}; }
};
static_assert(PlacedLayer<VocabularyParallelOutput>);

}  // namespace pdp::nn
