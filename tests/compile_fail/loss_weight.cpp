// error: pdp: weight.. of this loss must be `double weight.std::span<const Target> target. const`
#include <pdp/comm/self.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

struct NoLoss {
  using Target = std::int32_t;
  static constexpr bool has_classes = false;
  [[nodiscard]] constexpr pdp::Index target_elements(pdp::Index) const { return 1; }
  [[nodiscard]] float weight(std::span<const Target>) const { return 2; }
  template <class D, class T>
  void operator()(const D&, pdp::Matrix<const T>, std::span<const Target>, const double*, pdp::Matrix<T>, pdp::LossSums*) const {}
};

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, NoLoss{}, pdp::optim::Adam{}};

void train(pdp::comm::Self& world) { pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}}; }
