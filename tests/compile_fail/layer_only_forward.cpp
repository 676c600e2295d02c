// error: pdp: this layer needs a name
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

struct Copy : nn::NoParameters {
  template <class D, class T>
  void forward(const D&, const nn::State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
};

constexpr pdp::Task task{nn::Sequential{nn::Linear{784, 10}, Copy{}}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
