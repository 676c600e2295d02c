#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/rpc/network/part.hpp>
#include <pdp/rpc/owned_matrix.hpp>

namespace pdp::rpc {

/// A copy of a model that computes gradients on one rank, for parameters that live elsewhere, such as in a ParameterServer. All values, and
/// all gradients, are one array each. Elements are floats.
template <nn::Block Model, class Loss>
class Replica {
  using D = cpu::Cpu;
  using Part = NetworkPart<Model, D>;
  static_assert(loss::Loss<Loss, D>, "pdp: the loss is not a pdp::loss::Loss (see loss/loss.hpp)");

 public:
  using Target = typename Loss::Target;

  /// `inputs`: the number of values of a sample; 0: the number that the first layer takes.
  Replica(const Model& model, const Loss& loss, std::uint64_t seed, Index inputs = 0)
      : loss_{loss},
        part_{model, Shape{inputs != 0 ? inputs : nn::input_elements(model)}, nn::Path{}, 0, as_int(nn::leaves(model)), seed, D{}},
        gradients_{part_.gradients()} {}

  /// The values of all parameters, which the caller may change.
  [[nodiscard]] std::span<float> values() { return part_.stage().values(); }
  /// The gradient that gradient_of() has computed last.
  [[nodiscard]] std::span<const float> gradient() { return gradients_.span(); }

  /// Computes the loss of samples and its gradient. `rows`: the number of rows over which the gradient is averaged; 0: those of `x` that
  /// count, by their weights if the loss weighs rows. Returns the sums of the loss, and of the correct rows, over the rows of `x`. Throws
  /// ConfigError if a number is given for a loss that weighs rows.
  LossSums gradient_of(Matrix<const float> x, std::span<const Target> targets, Index rows = 0) {
    check(x, targets);
    const Index own = loss::counted_rows(loss_, targets, x.rows);
    if (rows != 0) loss::check_rows_given<Loss>();
    if (rows != 0 && rows < own)
      throw ConfigError{text("the gradient of ", own, " rows was to be averaged over ", rows, " rows; expected at least as many")};
    auto tensors = part_.take(x.rows, true);
    part_.forward(*tensors, x);
    const double divisor = rows != 0 ? as_double(rows) : loss::divisor_of_rows(loss_, targets, x.rows);
    const double scale = divisor > 0 ? 1 / divisor : 0;
    LossSums sums;
    loss::compute(loss_, part_.device(), Matrix<const float>{part_.output(*tensors)}, targets, &scale, part_.output_gradient(*tensors),
                  &sums, Pass{.is_training = true});
    part_.backward(*tensors, gradients_, false, false);
    part_.give_back(std::move(tensors));
    return sums;
  }
  /// Returns the output for samples.
  [[nodiscard]] OwnedMatrix predict(Matrix<const float> x) {
    check_samples(x);
    auto tensors = part_.take(x.rows, false);
    part_.forward(*tensors, x);
    OwnedMatrix y = OwnedMatrix::of(part_.output(*tensors));
    part_.give_back(std::move(tensors));
    return y;
  }
  /// Computes the loss of samples. Returns the sums over the rows of `x`.
  LossSums evaluate(Matrix<const float> x, std::span<const Target> targets) {
    check(x, targets);
    auto tensors = part_.take(x.rows, false);
    part_.forward(*tensors, x);
    LossSums sums;
    const double scale = 0;
    loss::compute(loss_, part_.device(), Matrix<const float>{part_.output(*tensors)}, targets, &scale, Matrix<float>{}, &sums, Pass{});
    part_.give_back(std::move(tensors));
    return sums;
  }

 private:
  void check_samples(Matrix<const float> x) const {
    if (x.rows < 0 || x.cols != part_.in_width())
      throw ShapeError{text("the samples have the shape [", x.rows, ", ", x.cols, "]; the model takes ", part_.in_width(), " columns")};
  }
  void check(Matrix<const float> x, std::span<const Target> targets) const {
    check_samples(x);
    const Index expected = x.rows * loss_.target_elements(part_.out_width());
    if (as_index(targets.size()) != expected)
      throw ShapeError{text("the loss got ", targets.size(), " target values for ", x.rows, " rows; expected ", expected)};
  }

  Loss loss_;
  Part part_;
  typename Part::Gradients gradients_;
};

}  // namespace pdp::rpc
