#pragma once

#include <pdp/core/affine.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/placement.hpp>

namespace pdp::nn {

// Not constexpr on purpose: constant evaluation stops at the call, and the compiler shows this name and the numbers.
[[noreturn]] void a_width_cannot_be_divided_evenly(Index width, int ranks, const Path& at, const char* layer, const char* what);

/// Throws ShapeError if a width cannot be divided evenly. In a constant expression, this is a compile error instead.
constexpr void check_division(Index width, int ranks, const Path& at, const char* layer, const char* what) {
  if (ranks < 1 || width % ranks != 0) a_width_cannot_be_divided_evenly(width, ranks, at, layer, what);
}

/// A Linear with outputs divided over the ranks of a tensor-parallel group. Each rank has some columns of W and b, takes all of x, and
/// gives the same columns of y: [rows, in] -> [rows, out / ranks]. The sizes are those of the whole layer. divided() sets a rank's part;
/// until then the part is the whole.
struct ColumnParallel {
  static constexpr const char* name = "ColumnParallel";
  using forgets_output = ColumnParallel;
  static constexpr Placement takes = Placement::replicated, gives = Placement::sharded;

  Index in = 0;
  Index out = 0;
  bool bias = true;
  Initializer initializer = pytorch_default;
  std::optional<Initializer> bias_initializer{};  // as of Linear
  Part part{};

  [[nodiscard]] constexpr ColumnParallel divided(Part of, const Path& at) const {
    check_division(out, of.count, at, name, "outputs");
    return {in, out, bias, initializer, bias_initializer, of};
  }
  [[nodiscard]] constexpr Index input_elements() const { return in; }
  [[nodiscard]] constexpr Misfit misfit(const Shape& input) const { return own().misfit(input); }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return own().output(input); }
  [[nodiscard]] constexpr Index parameter_elements() const { return own().parameter_elements(); }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  [[nodiscard]] constexpr Index products(const Shape& input) const { return own().products(input); }

  template <class Visit>
  constexpr void parameters(const Path& path, Index offset, Visit&& visit) const {
    own().parameters(path, offset, [&](Parameter parameter) {
      parameter.fan_out = out;
      (parameter.cols > 0 ? parameter.col_part : parameter.row_part) = part;
      visit(parameter);
    });
  }

  template <class D, class T>
  void forward(const D& device, const State<T>& state, Matrix<const T> x, Matrix<T> y, T* saved,
               Activation activation = Activation::none) const {
    own().forward(device, state, x, y, saved, activation);
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
  [[nodiscard]] constexpr Linear own() const { return {in, out / part.count, bias, initializer, bias_initializer}; }
};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/column_parallel.hpp>
#endif
