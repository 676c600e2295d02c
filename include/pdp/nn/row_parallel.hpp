#pragma once

#include <pdp/nn/column_parallel.hpp>

namespace pdp::nn {

/// A Linear with inputs divided over the ranks of a tensor-parallel group. Each rank has some rows of W, takes the same columns of x, and
/// gives one term of the sum y: [rows, in / ranks] -> [rows, out]. All ranks have the bias, and the first adds it. The sizes are those of
/// the whole layer. divided() sets a rank's part; until then the part is the whole.
struct RowParallel {
  static constexpr const char* name = "RowParallel";
  using forgets_output = RowParallel;
  static constexpr Placement takes = Placement::sharded, gives = Placement::partial;

  Index in = 0;
  Index out = 0;
  bool bias = true;
  Initializer initializer = pytorch_default;
  std::optional<Initializer> bias_initializer{};  // as of Linear
  Part part{};

  [[nodiscard]] constexpr RowParallel divided(Part of, const Path& at) const {
    check_division(in, of.count, at, name, "inputs");
    return {in, out, bias, initializer, bias_initializer, of};
  }
  [[nodiscard]] constexpr Index input_elements() const { return own().in; }
  /// If each rank has some columns of several vectors, these are not some columns of one vector.
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return misfit_of_last(own().in, input, part.count == 1); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return own().output(input); }
  [[nodiscard]] constexpr Index parameter_elements() const { return own().parameter_elements(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return own().products(input); }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    own().parameters(path, offset, [&](Parameter parameter) {
      parameter.fan_in = in;
      if (parameter.cols > 0) parameter.row_part = part;
      visit(parameter);
    });
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved) const {
    Linear term = own();
    term.bias = bias && part.index == 0;
    term.forward(device, state, x, y, saved);
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
  [[nodiscard]] constexpr Linear own() const { return {in / part.count, out, bias, initializer, bias_initializer}; }
};

}  // namespace pdp::nn
