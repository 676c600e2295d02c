// error: pdp: this layer needs the function `Index parameter_elements.. const`, or the base class nn::NoParameters
#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

using pdp::Index, pdp::Matrix, pdp::Shape;
namespace nn = pdp::nn;

struct Copy {
  static constexpr const char* name = "Copy";
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape output(const Shape& input) const { return input; }
  template <class D, class T>
  void forward(const D&, const nn::State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_input(const D&, const nn::State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>, T*) const {}
  template <class D, class T>
  void backward_weight(const D&, const nn::State<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T>, T*) const {}
};

constexpr pdp::Task task{nn::Sequential{nn::Linear{784, 10}, Copy{}}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
