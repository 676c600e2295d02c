// error: pdp: this layer needs the function `Shape output.const Shape& input. const`
#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

using pdp::Index, pdp::Shape;

struct Copy : pdp::nn::NoParameters {
  static constexpr const char* name = "Copy";
  [[nodiscard]] constexpr Index input_elements() const { return 0; }
  [[nodiscard]] constexpr Shape outputs(const Shape& input) const { return input; }
};

constexpr pdp::Task task{Copy{}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
