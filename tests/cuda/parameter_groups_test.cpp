#include <pdp/comm/self.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/averages.hpp>
#include <pdp/train/trainer.hpp>

#include <cstddef>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

namespace cuda_parameter_groups_test {

namespace optim = pdp::optim;
using pdp::checkpoint::Tensor;

namespace {

constexpr optim::ParameterGroup frozen_weight{.chooses = [](const optim::ParameterInfo& of) { return of.name == "0.weight"; },
                                              .is_frozen = true};
constexpr pdp::Task grouped{tasks::classifier.model, pdp::loss::CrossEntropy{},
                            optim::Grouped{optim::Averaged{optim::AdamW{.lr = 0.01f, .weight_decay = 0.1f}, 0.9f},
                                           optim::no_decay_on_biases_and_norms, frozen_weight}};

struct Course {
  std::vector<Tensor> before, after, averages;
  double loss = 0, loss_of_averages = 0;
};

/// Trains 2 epochs of 4 steps. `how`: device and precision.
template <class... How>
Course train(const How&... how) {
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, grouped, {.global_batch = 32, .seed = 3, .clip_norm = 1}, how...};
  const auto data = tasks::samples(128);
  Course course;
  course.before = trainer.parameters();
  trainer.fit(data, {.epochs = 2}, [](const pdp::Epoch&) {});
  course.averages = pdp::with_averages(trainer, [&] { return trainer.parameters(); });
  course.loss_of_averages = pdp::with_averages(trainer, [&] { return trainer.evaluate(data).mean_loss(); });
  course.after = trainer.parameters();
  course.loss = trainer.evaluate(data).mean_loss();
  return course;
}

/// Checks that the frozen tensor has its bits and the others have changed.
void check_frozen(const Course& course) {
  for (std::size_t t = 0; t < course.before.size(); ++t) {
    const bool is_frozen = course.before[t].name == "0.weight";
    CHECK((course.after[t].values == course.before[t].values) == is_frozen);
    CHECK((course.after[t].values == course.averages[t].values) == is_frozen);
  }
}

}  // namespace

TEST_CASE("Parameter groups and averages on a GPU are those on a CPU", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const Course expected = train(), found = train(*device);
  check_frozen(found);
  for (std::size_t t = 0; t < expected.after.size(); ++t) {
    CHECK(support::difference(found.after[t].values, expected.after[t].values) < 1e-4);
    CHECK(support::difference(found.averages[t].values, expected.averages[t].values) < 1e-4);
  }
  CHECK_THAT(found.loss, WithinRel(expected.loss, 1e-4));
  CHECK_THAT(found.loss_of_averages, WithinRel(expected.loss_of_averages, 1e-4));
}

TEST_CASE("Parameter groups and averages in 16 bits are those of the float parameters", "[cuda]") {
  const auto device = gpu::device();
  if (!device) return;
  const Course expected = train(), found = train(*device, pdp::MixedBfloat16{});
  check_frozen(found);
  for (std::size_t t = 0; t < expected.after.size(); ++t) {
    CHECK(support::difference(found.after[t].values, expected.after[t].values) < 0.2);
    CHECK(support::difference(found.averages[t].values, expected.averages[t].values) < 0.2);
  }
  CHECK_THAT(found.loss, WithinRel(expected.loss, 0.03));
  CHECK_THAT(found.loss_of_averages, WithinRel(expected.loss_of_averages, 0.03));
  CHECK(found.loss != found.loss_of_averages);
}

}  // namespace cuda_parameter_groups_test
