// error: pdp: this layer needs the function `void backward_input.const D& device
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
  [[nodiscard]] constexpr Index parameter_elements() const { return 0; }
  [[nodiscard]] constexpr Index saved_elements(const Shape&) const { return 0; }
  template <class Visit>
  constexpr void parameters(const nn::Path&, Index, Visit&&) const {}
  template <class D, class T>
  void forward(const D&, const nn::State<T>&, Matrix<const T>, Matrix<T>, T*) const {}
};

constexpr pdp::Task task{nn::Sequential{nn::Linear{784, 10}, Copy{}}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world) { pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}}; }
