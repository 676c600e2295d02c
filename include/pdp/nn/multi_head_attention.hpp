#pragma once

#include <utility>

#include <pdp/core/affine.hpp>
#include <pdp/core/attention.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/misfit.hpp>

namespace pdp::nn {

/// The options of MultiHeadAttention.
struct AttentionOptions {
  bool causal = false;  // a position attends only to itself and the positions before it
  Index key_heads = 0;  // heads of keys and values, each shared by some heads of queries; 0: as many as there are of queries
  double rotary = 0;    // the base of rotary positions, such as 10000 (see Rotation); 0: none
  bool bias = true;     // of both products
};

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void the_heads_of_attention_must_divide_its_width(Index width, Index heads);
[[noreturn]] void the_key_heads_of_attention_must_divide_its_heads(Index heads, Index key_heads);
[[noreturn]] void heads_with_rotary_positions_need_an_even_width(Index width, Index heads);
[[noreturn]] void the_base_of_rotary_positions_must_be_positive(double base);

}  // namespace detail

/// Self-attention: [rows, positions, width] -> [rows, positions, width]. Each position becomes a mean of values of all positions, weighted
/// by the softmax of its query times their keys, in each head. Vaswani et al., "Attention is all you need", NeurIPS 2017. Key heads that
/// several heads share: Ainslie et al., "GQA", EMNLP 2023. Memory grows with the positions, not with their square (see cpu/attend.hpp).
///
/// Parameters are named and initialised as those of PyTorch's MultiheadAttention. Throws ConfigError if the heads do not divide the width,
/// or the key heads the heads; in a constant, this is a compile error.
class MultiHeadAttention {
 public:
  static constexpr const char* name = "MultiHeadAttention";
  using forgets_output = MultiHeadAttention;

  constexpr MultiHeadAttention(Index width, Index heads, const AttentionOptions& options = {})
      : width_{width}, heads_{heads}, options_{options} {
    if (options_.key_heads == 0) options_.key_heads = heads;
    if (heads < 1 || width < 1 || width % heads != 0) detail::the_heads_of_attention_must_divide_its_width(width, heads);
    head_width_ = width / heads;
    if (options_.key_heads < 1 || heads % options_.key_heads != 0)
      detail::the_key_heads_of_attention_must_divide_its_heads(heads, options_.key_heads);
    if (!(options.rotary >= 0 && options.rotary < 1e300)) detail::the_base_of_rotary_positions_must_be_positive(options.rotary);
    if (options.rotary > 0 && width / heads % 2 != 0) detail::heads_with_rotary_positions_need_an_even_width(width, heads);
  }

  [[nodiscard]] constexpr Index width() const { return width_; }
  [[nodiscard]] constexpr Index heads() const { return heads_; }
  [[nodiscard]] constexpr const AttentionOptions& options() const { return options_; }

  /// Returns how attention sees samples of a shape.
  [[nodiscard]] constexpr Attention attention(const Shape& input) const {
    return {input.known() ? input[0] : 0, heads_, options_.key_heads, head_width_, options_.causal};
  }

  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const {
    if (const Misfit of_last = misfit_of_last(width_, input, false)) return of_last;
    if (input.rank_is_known() && input.rank() != 2) return {"dimensions", 2, input.rank()};
    return {};
  }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input.rank() > 0 ? input : Shape{Shape::any, width_}; }
  [[nodiscard]] constexpr Index parameter_elements() const { return out_bias() + (options_.bias ? padded_parameter(width_) : 0); }
  [[nodiscard]] constexpr Index saved_elements(const Shape& input) const { return memory(input).end; }
  [[nodiscard]] constexpr Index products(const Shape& input) const {
    const Attention how = attention(input);
    const Index of_each_key = 2 * how.out(), keys = how.causal ? (how.positions + 1) / 2 : how.positions;
    return how.positions * ((how.row() + how.out()) * width_ + keys * of_each_key);
  }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    parameters_of(Part{}, path, offset, visit);
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    forward(device, state, x, y, saved, options_.bias);
  }
  template <class D, class T>
  void backward_input(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                      Matrix<T> gradient_x, T* saved) const {
    const Tensors<T> at = tensors(state, x.rows, saved);
    gemm_nt(device, vectors(gradient_y, width_), out_weight(state), vectors(at.gradient_attended, at.how.out()), false);
    attend_backward(device, at.how, Matrix<const T>{at.projected}, Matrix<const T>{at.attended}, Matrix<const T>{at.gradient_attended},
                    static_cast<const T*>(at.sums), at.gradient_projected);
    if (options_.rotary > 0) rotate(device, at.how, Rotation{options_.rotary, true}, at.gradient_projected);
    gemm_nt(device, vectors(Matrix<const T>{at.gradient_projected}, at.how.row()), Matrix<const T>{state.value, width_, at.how.row()},
            vectors(gradient_x, width_), false);
  }
  template <class D, class T>
  void backward_weight(const D& device, const State<T>& state, Matrix<const T> x, Matrix<const T>, Matrix<const T> gradient_y,
                       T* saved) const {
    const Tensors<T> at = tensors(state, x.rows, saved);
    const Matrix<const T> of_projected = vectors(Matrix<const T>{at.gradient_projected}, at.how.row());
    gemm_tn(device, vectors(x, width_), of_projected, Matrix<Accumulated<T>>{state.gradient, width_, at.how.row()}, state.accumulate);
    gemm_tn(device, vectors(Matrix<const T>{at.attended}, at.how.out()), vectors(gradient_y, width_),
            Matrix<Accumulated<T>>{state.gradient + out_weight(), at.how.out(), width_}, state.accumulate);
    if (!options_.bias) return;
    sum_rows(device, of_projected, state.gradient + in_bias(), state.accumulate);
    sum_rows(device, vectors(gradient_y, width_), state.gradient + out_bias(), state.accumulate);
  }

 protected:
  /// One of several equal parts of the heads of `whole`, which the number of parts must divide. Its output is one term of a sum.
  constexpr MultiHeadAttention(const MultiHeadAttention& whole, int parts)
      : width_{whole.width_}, heads_{whole.heads_ / parts}, head_width_{whole.head_width_}, options_{whole.options_} {
    options_.key_heads /= parts;
  }

  /// Visits the parameters, if the heads are one of several equal parts.
  template <class Visit>
  constexpr void parameters_of(Part part, const Path& path, Index offset, Visit&& visit) const {
    const Attention how = attention({});
    const Index row = how.row(), out = how.out(), all_row = row * part.count, all_out = out * part.count;
    Parameter in{path, "in_proj_weight", width_, row, true, offset, width_, all_row, xavier_uniform};
    in.col_part = part;
    in.order = {how.key_heads * part.count, how.of_key_head() * how.width, how.width};
    visit(std::as_const(in));
    if (options_.bias) {
      Parameter bias{path, "in_proj_bias", row, 0, false, offset + in_bias(), width_, all_row, zeros};
      bias.row_part = part;
      bias.order = in.order;
      visit(std::as_const(bias));
    }
    Parameter weight{path, "out_proj.weight", out, width_, true, offset + out_weight(), all_out, width_, pytorch_default};
    weight.row_part = part;
    visit(std::as_const(weight));
    if (options_.bias) visit(Parameter{path, "out_proj.bias", width_, 0, false, offset + out_bias(), all_out, width_, zeros});
  }
  /// `adds_bias`: whether it adds the bias of the output.
  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved, bool adds_bias) const {
    const Tensors<T> at = tensors(state, x.rows, saved);
    affine(device, vectors(x, width_), Matrix<const T>{state.value, width_, at.how.row()},
           options_.bias ? state.value + in_bias() : nullptr, vectors(at.projected, at.how.row()), Activation::none);
    if (options_.rotary > 0) rotate(device, at.how, Rotation{options_.rotary}, at.projected);
    attend(device, at.how, Matrix<const T>{at.projected}, at.attended, at.sums);
    affine(device, vectors(Matrix<const T>{at.attended}, at.how.out()), out_weight(state), adds_bias ? state.value + out_bias() : nullptr,
           vectors(y, width_), Activation::none);
  }

 private:
  /// The offsets of the tensors of a sample in saved memory, in elements of a sample.
  struct Memory {
    Index attended, sums, gradient_projected, gradient_attended, end;
  };
  template <class T>
  struct Tensors {
    Attention how;
    Matrix<T> projected, attended;
    T* sums;
    Matrix<T> gradient_projected, gradient_attended;
  };

  [[nodiscard]] constexpr Memory memory(const Shape& input) const {
    const Attention how = attention(input);
    const Index projected = how.positions * how.row(), attended = how.positions * how.out();
    const Index sums = projected + attended, gradient_projected = sums + how.positions * heads_ * attention_sums;
    return {projected, sums, gradient_projected, gradient_projected + projected, gradient_projected + projected + attended};
  }
  template <class T>
  [[nodiscard]] constexpr Tensors<T> tensors(const State<T>& state, Index rows, T* saved) const {
    const Attention how = attention(state.input);
    const Memory at = memory(state.input);
    const Index projected = how.positions * how.row(), attended = how.positions * how.out();
    return {how,
            {saved, rows, projected},
            {saved + rows * at.attended, rows, attended},
            saved + rows * at.sums,
            {saved + rows * at.gradient_projected, rows, projected},
            {saved + rows * at.gradient_attended, rows, attended}};
  }
  /// Return the offsets of the parameters.
  [[nodiscard]] constexpr Index in_bias() const { return padded_parameter(width_ * attention({}).row()); }
  [[nodiscard]] constexpr Index out_weight() const { return in_bias() + (options_.bias ? padded_parameter(attention({}).row()) : 0); }
  [[nodiscard]] constexpr Index out_bias() const { return out_weight() + padded_parameter(attention({}).out() * width_); }
  template <class T>
  [[nodiscard]] constexpr Matrix<const T> out_weight(const State<T>& state) const {
    return {state.value + out_weight(), attention({}).out(), width_};
  }

  Index width_, heads_, head_width_ = 0;
  AttentionOptions options_;
};
static_assert(Layer<MultiHeadAttention> && ChecksShape<MultiHeadAttention>);

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/multi_head_attention.hpp>
#endif
