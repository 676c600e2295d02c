#pragma once

#include <cstdint>

#include <pdp/core/token.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

/// A table with a vector for each token: tokens [rows, positions] -> [rows, positions, width]. It is the first layer of a model. `weight`
/// has the shape [vocabulary, width].
struct Embedding {
  static constexpr const char* name = "Embedding";
  using Input = std::int32_t;
  using forgets_output = Embedding;

  Index vocabulary = 0;  // tokens are from 0 to vocabulary - 1
  Index width = 0;
  Initializer initializer = normal(1);  // PyTorch's default

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (input.rank() == Shape::max_rank) return {"dimensions", Shape::max_rank - 1, input.rank()};
    return {};
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.with_appended(width); }
  [[nodiscard]] constexpr Index parameter_elements() const { return padded_parameter(vocabulary * width); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    visit(Parameter{path, "weight", vocabulary, width, false, offset, width, vocabulary, initializer});
  }

  /// Throws TokenError if a token has no vector.
  void check(Matrix<const std::int32_t> tokens) const { check_tokens(tokens, vocabulary); }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const std::int32_t> tokens, Matrix<T> y, T*) const {
    embed(device, tokens, TokenRows{0, vocabulary}, Matrix<const T>{state.value, vocabulary, width}, y);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const std::int32_t> tokens, Matrix<const T>,
                       Matrix<const T> gradient_y, T*) const {
    embed_backward(device, tokens, TokenRows{0, vocabulary}, gradient_y, Matrix<Accumulated<T>>{state.gradient, vocabulary, width},
                   state.accumulate);
  }
};
static_assert(Layer<Embedding> && takes_tokens<Embedding>);

}  // namespace pdp::nn
