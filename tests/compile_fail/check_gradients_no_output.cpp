// error: pdp: this layer needs the function `Shape output.const Shape& input. const`
#include <pdp/nn/layer.hpp>
#include <pdp/testing/gradients.hpp>

using pdp::Index, pdp::Matrix, pdp::Shape;
namespace nn = pdp::nn;

struct Copy : nn::NoParameters {
  static constexpr const char* name = "Copy";
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  template <class D, class T>
  void forward(const D&, const nn::State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_input(const D&, const nn::State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>, T*) const {}
};

pdp::testing::CheckResult check() { return pdp::testing::check_gradients(Copy{}, Shape{3}); }
