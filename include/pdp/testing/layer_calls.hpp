#pragma once

#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/nn/layer.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/testing/differences.hpp>

namespace pdp::testing::detail {

/// A layer on a CPU with random samples, for a check that is compiled once for all layers. T: the type of the arithmetic.
template <class T>
class CheckedLayer {
 public:
  /// Some of the samples.
  struct Rows {
    Index first = 0, count = 0;
  };

  CheckedLayer() = default;
  CheckedLayer(const CheckedLayer&) = delete;
  CheckedLayer& operator=(const CheckedLayer&) = delete;
  virtual ~CheckedLayer() = default;

  /// Returns the samples; nothing if they are tokens.
  [[nodiscard]] virtual std::span<T> x() = 0;
  /// Call the functions of the layer, or of nn/pauses.hpp. `y` of forward_in_place() holds x at first.
  virtual void forward(const nn::State<T>& state, Rows rows, Matrix<T> y, T* saved) const = 0;
  virtual void forward_in_place(const nn::State<T>& state, Matrix<T> y, T* saved) const = 0;
  virtual void forward_part(const nn::State<T>& state, Rows rows, Matrix<T> y, T* saved, Index part) const = 0;
  virtual void backward_input(const nn::State<T>& state, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                              T* saved) const = 0;
  virtual void backward_part(const nn::State<T>& state, Rows rows, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                             T* saved, Index part) const = 0;
  virtual void backward_weight(const nn::State<T>& state, Rows rows, Matrix<const T> y, Matrix<const T> gradient_y, T* saved) const = 0;

  struct Facts {
    Shape input{};                                     // of a sample
    Index in = 0, out = 0, saved = 0, parameters = 0;  // elements
    Index pauses = 0, batch_sums = 0;
    bool takes_tokens = false, works_in_place = false, forgets_output = false, may_pause = false;
    std::vector<nn::Parameter> all_parameters{};
  };
  Facts facts{};
};

struct AppendParameter {
  std::vector<nn::Parameter>& all;

  void operator()(const nn::Parameter& parameter) const { all.push_back(parameter); }
};

/// The same for one type of layers. Refers to the layer.
template <class T, class L>
class LayerCalls final : public CheckedLayer<T> {
  using X = nn::InputOf<L, T>;
  using typename CheckedLayer<T>::Rows;

 public:
  LayerCalls(const L& layer, const nn::Path& at, const Shape& input, const GradientOptions& options)
      : layer_{layer}, x_{inputs(layer, options.rows * input.elements(), options)} {
    this->facts.input = input;
    this->facts.in = input.elements();
    this->facts.out = layer.output(input).elements();
    this->facts.saved = layer.saved_elements(input);
    this->facts.parameters = layer.parameter_elements();
    this->facts.pauses = nn::pauses(layer);
    this->facts.batch_sums = nn::batch_sums(layer);
    this->facts.takes_tokens = nn::takes_tokens<L>;
    this->facts.works_in_place = nn::works_in_place<L>;
    this->facts.forgets_output = nn::forgets_output<L>;
    this->facts.may_pause = nn::Pauses<L>;
    const AppendParameter visit{this->facts.all_parameters};
    layer.parameters(at, 0, visit);
  }

  [[nodiscard]] std::span<T> x() override {
    if constexpr (nn::takes_tokens<L>)
      return {};
    else
      return x_;
  }
  void forward(const nn::State<T>& state, Rows rows, Matrix<T> y, T* saved) const override {
    layer_.forward(cpu_, state, samples(rows), y, saved);
  }
  void forward_in_place(const nn::State<T>& state, Matrix<T> y, T* saved) const override {
    if constexpr (nn::works_in_place<L>) layer_.forward(cpu_, state, Matrix<const T>{y}, y, saved);
  }
  void forward_part(const nn::State<T>& state, Rows rows, Matrix<T> y, T* saved, Index part) const override {
    nn::forward_part(layer_, cpu_, state, samples(rows), y, saved, part);
  }
  void backward_input(const nn::State<T>& state, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x,
                      T* saved) const override {
    if constexpr (!nn::takes_tokens<L>) layer_.backward_input(cpu_, state, samples({0, y.rows}), y, gradient_y, gradient_x, saved);
  }
  void backward_part(const nn::State<T>& state, Rows rows, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x, T* saved,
                     Index part) const override {
    if constexpr (!nn::takes_tokens<L>) nn::backward_part(layer_, cpu_, state, samples(rows), y, gradient_y, gradient_x, saved, part);
  }
  void backward_weight(const nn::State<T>& state, Rows rows, Matrix<const T> y, Matrix<const T> gradient_y, T* saved) const override {
    layer_.backward_weight(cpu_, state, samples(rows), y, gradient_y, saved);
  }

 private:
  /// Returns random values, or random tokens of the layer's vocabulary.
  [[nodiscard]] static std::vector<X> inputs(const L& layer, Index count, const GradientOptions& options) {
    if constexpr (nn::takes_tokens<L>) {
      Index vocabulary = 2;
      if constexpr (requires { layer.vocabulary; }) vocabulary = layer.vocabulary;
      random::Stream stream{random::make_key(options.seed, "tokens")};
      std::vector<X> tokens;
      for (Index i = 0; i < count; ++i) tokens.push_back(static_cast<X>(stream.below(as_size(vocabulary))));
      return tokens;
    } else {
      return random_values<T>(count, options, "x", options.mean, options.deviation);
    }
  }
  [[nodiscard]] Matrix<const X> samples(Rows rows) const { return {x_.data() + rows.first * this->facts.in, rows.count, this->facts.in}; }

  const L& layer_;
  const cpu::Cpu cpu_{};
  std::vector<X> x_;
};

}  // namespace pdp::testing::detail
