#include <pdp/comm/self.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/train/trainer.hpp>

#include <optional>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};

struct Zeros {
  using Target = std::int32_t;
  [[nodiscard]] pdp::Index size() const { return 100; }
  [[nodiscard]] pdp::Shape sample_shape() const { return pdp::Shape{784}; }
  [[nodiscard]] pdp::Shape target_shape() const { return pdp::Shape{1}; }
  void gather(std::span<const pdp::Index>, std::span<float>, std::span<Target>, std::optional<pdp::data::TrainingEpoch> = {}) const {}
};

void train(pdp::comm::Self& world) {
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 8}};
  trainer.fit(Zeros{}, {.epochs = 1});
}
