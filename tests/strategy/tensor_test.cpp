#include <pdp/comm/thread.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/verify.hpp>

#include <algorithm>
#include <mutex>

#include "catch.hpp"
#include "strategy/communicators.hpp"
#include "strategy/tasks.hpp"

namespace tensor_test {

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::testing::serial_equivalence;

// Tensor parallelism, alone and combined with pipelines and data parallelism.

// Plans of divided layers can be verified at compile time, too.
static_assert(is_sound<[] {
  constexpr nn::Sequential model{nn::Linear{8, 4}, nn::Tanh{}, nn::Linear{4, 8}, nn::Tanh{}, nn::Linear{8, 4}};
  const nn::Outline outline = nn::outline(nn::Divided{model, nn::Part{0, 2}, nn::Output::may_be_sharded}, pdp::Shape{8});
  return verify(Hybrid<>{.mesh = {1, 2, 2}, .micro_batches = 2}, outline, 4);
}>);

namespace {

void check(const pdp::testing::Equivalence& report) {
  INFO(report.text());
  CHECK(report);
  CHECK(report.strategy().back() < 0.8 * report.strategy().front());
}

/// One layer for each way to divide: by outputs, by inputs, by classes.
constexpr pdp::Task three_layers{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 16}, nn::Relu{}, nn::Linear{16, 4}},
                                 pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};

/// A model whose 5 classes cannot be divided evenly.
constexpr pdp::Task five_classes{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 16}, nn::Relu{}, nn::Linear{16, 5}},
                                 pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};

/// three_layers, divided by hand.
constexpr pdp::Task divided_by_hand{nn::Sequential{nn::Replicate{}, nn::ColumnParallel{8, 24}, nn::Tanh{}, nn::RowParallel{24, 16},
                                                   nn::AllReduce{}, nn::Relu{}, nn::Replicate{}, nn::ColumnParallel{16, 4}},
                                    pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}};

auto deep(int layers) {
  std::vector<pdp::Index> widths(static_cast<std::size_t>(layers) + 1, 16);
  widths.front() = 8;
  widths.back() = 4;
  return pdp::Task{nn::MultilayerPerceptron{widths, nn::Tanh{}, {.initializer = nn::xavier_uniform}}, pdp::loss::CrossEntropy{},
                   pdp::optim::Adam{.lr = 3e-3f}};
}

/// Batches of 32, 1, 7 and 2 rows.
pdp::testing::GlobalBatch<std::int32_t> uneven(int step) {
  const std::size_t rows = std::array<std::size_t, 4>{32, 1, 7, 2}[static_cast<std::size_t>(step) % 4];
  pdp::testing::GlobalBatch<std::int32_t> batch{pdp::testing::normal(rows * 8, step % 8), {}};
  batch.targets = tasks::classes_of(batch.x);
  return batch;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("TensorParallel gives the losses of Single, also with divided classes and uneven batches",
                        "[parallel][equivalence][tensor]", Communicators) {
  const int ranks = GENERATE(1, 2, 4);
  const auto samples = tasks::samples(250);
  for (const int accumulate : {1, 3}) {
    check(serial_equivalence<TestType>(three_layers, samples, TensorParallel{accumulate}, ranks));
    check(serial_equivalence<TestType>(divided_by_hand, samples, TensorParallel{accumulate}, ranks));
  }
  check(serial_equivalence<TestType>(deep(6), samples, TensorParallel{}, ranks));
  if (ranks < 4) check(serial_equivalence<TestType>(five_classes, samples, TensorParallel{}, ranks));  // the last layer stays whole
  check(serial_equivalence<TestType>(three_layers, uneven, TensorParallel{.accumulate = 5}, ranks, {.steps = 60}));
}

TEST_CASE("TensorParallel and Hybrid give the losses of Single when gradients are clipped", "[parallel][equivalence][tensor][gradient]") {
  const auto samples = tasks::samples(250);
  const pdp::testing::EquivalenceOptions options{.gradient = {.clip_norm = 0.2}};
  check(serial_equivalence<comm::Thread>(three_layers, samples, TensorParallel{}, 2, options));
  check(serial_equivalence<comm::Thread>(three_layers, samples, TensorParallel{}, 4, options));
  check(serial_equivalence<comm::Thread>(deep(4), samples, Hybrid<>{.mesh = {2, 2, 2}, .micro_batches = 2}, 8, options));
}

TEST_CASE("TensorParallel gives the losses of Single for a loss that needs whole outputs", "[parallel][equivalence][tensor]") {
  constexpr pdp::Task regression{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 16}, nn::Tanh{}, nn::Linear{16, 3}},
                                 pdp::loss::MeanSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};
  const pdp::testing::Batches<float> batches = [](int step) {
    pdp::testing::GlobalBatch<float> batch{pdp::testing::normal(32 * 8, step % 4), {}};
    for (std::size_t row = 0; row < 32; ++row)
      for (std::size_t output = 0; output < 3; ++output) batch.targets.push_back(0.5f * batch.x[row * 8 + output]);
    return batch;
  };
  check(serial_equivalence<comm::Thread>(regression, batches, TensorParallel{}, 4));
}

namespace {

/// A user-defined loss that accepts divided columns: the squared error of each row, divided by its width.
struct ShardedSquaredError : pdp::loss::MeanSquaredError {
  static constexpr pdp::Index part_numbers = 1;
  template <class D, class T>
  void part(const D&, pdp::Matrix<const T> own, std::span<const T> targets, pdp::Index first, pdp::Index columns,
            pdp::Matrix<T> out) const {
    for (pdp::Index r = 0; r < own.rows; ++r) {
      T sum{};
      for (pdp::Index c = 0; c < own.cols; ++c) sum += square(own.row(r)[c] - targets[static_cast<std::size_t>(r * columns + first + c)]);
      out.row(r)[0] = sum;
    }
  }
  template <class D, class T>
  void join(const D&, pdp::Matrix<const T> own, std::span<const T> targets, pdp::Index first, pdp::Index columns,
            pdp::Matrix<const T> parts, const double* scale, pdp::Matrix<T> gradient, pdp::LossSums* sums) const {
    for (const T part : parts.values()) sums->loss += static_cast<double>(part) / static_cast<double>(columns);
    for (pdp::Index r = 0; r < own.rows && gradient.data != nullptr; ++r)
      for (pdp::Index c = 0; c < own.cols; ++c)
        gradient.row(r)[c] = (own.row(r)[c] - targets[static_cast<std::size_t>(r * columns + first + c)]) *
                             (2 * static_cast<T>(*scale) / static_cast<T>(columns));
  }
  template <class T>
  static T square(T x) {
    return x * x;
  }
};

}  // namespace

TEST_CASE("TensorParallel gives the losses of Single for a user-defined loss over divided columns", "[parallel][equivalence][tensor]") {
  constexpr pdp::Task regression{nn::Sequential{nn::Linear{8, 24}, nn::Tanh{}, nn::Linear{24, 16}, nn::Tanh{}, nn::Linear{16, 4}},
                                 ShardedSquaredError{}, pdp::optim::Adam{.lr = 1e-2f}};
  const pdp::testing::Batches<float> batches = [](int step) {
    pdp::testing::GlobalBatch<float> batch{pdp::testing::normal(32 * 8, step % 4), {}};
    for (std::size_t row = 0; row < 32; ++row)
      for (std::size_t output = 0; output < 4; ++output) batch.targets.push_back(0.5f * batch.x[row * 8 + output]);
    return batch;
  };
  check(serial_equivalence<comm::Thread>(regression, batches, TensorParallel{2}, 4));
}

TEST_CASE("with_exchanges makes sound plans from those of Zero in every stage", "[parallel][verify][tensor][zero]") {
  const auto task = deep(5);
  const nn::Outline outline = nn::outline(nn::Divided{task.model, {0, 2}, nn::Output::may_be_sharded}, pdp::Shape{8});
  for (const int stage : {1, 2, 3})
    for (const pdp::Index unit_elements : {1, 100, 10'000})
      for (const int accumulate : {1, 2}) {
        std::vector<Plan> all;  // two data shards, each on two ranks that divide the layers
        for (int rank = 0; rank < 4; ++rank) {
          const Mesh mesh{.data = 2, .tensor = 2};
          Plan plan = pdp::strategy::detail::along(
              Zero{.stage = stage, .accumulate = accumulate, .unit_elements = unit_elements}.plan(outline, {rank / 2, 2}),
              Mesh::data_group);
          plan.groups = mesh.groups(rank);
          all.push_back(with_exchanges(outline, std::move(plan), {rank % 2, 2}, Mesh::tensor_group));
        }
        CHECK(explain(verify(outline, all), all) == "the plan is sound");
      }
}

TEST_CASE("Hybrid counts every row once for every shape of the mesh", "[parallel][tensor][mesh]") {
  const std::vector<float> x = pdp::testing::normal(9 * 8, 1);
  const auto classes = tasks::classes_of(x);
  for (const auto& mesh : {Mesh{1, 1, 4}, Mesh{2, 2, 1}, Mesh{1, 2, 2}, Mesh{2, 1, 2}})
    pdp::testing::ranks<comm::Thread>(4, [&](auto& world) {
      pdp::Trainer trainer{world, Hybrid<>{.mesh = mesh, .micro_batches = 2}, three_layers, {.global_batch = 10, .seed = 1}};
      const bool first = trainer.share().index == 0;
      const std::size_t begin = first ? 0 : 5, rows = trainer.share().count == 1 ? 9 : first ? 5 : 4;
      const auto totals = trainer.step(std::span{x}.subspan(begin * 8, rows * 8), std::span{classes}.subspan(begin, rows));
      const std::lock_guard lock{checks_mutex};
      CHECK(totals.rows == 9);
      CHECK(totals.correct <= 9);
      return 0;
    });
}

TEMPLATE_LIST_TEST_CASE("Hybrid gives the losses of Single for every combination of mesh axes", "[parallel][equivalence][tensor][mesh]",
                        Communicators) {
  const auto samples = tasks::samples(250);
  const auto task = deep(6);
  check(serial_equivalence<TestType>(task, samples, Hybrid<>{.mesh = {2, 2, 2}, .micro_batches = 3}, 8));
  check(serial_equivalence<TestType>(task, samples, Hybrid<ZeroBubble>{.mesh = {2, 2, 2}, .micro_batches = 4}, 8));
  check(serial_equivalence<TestType>(task, samples, Hybrid<GPipe>{.mesh = {1, 2, 2}, .micro_batches = 3, .recompute = true}, 4));
  check(serial_equivalence<TestType>(task, samples, Hybrid<>{.mesh = {2, 2, 2}, .micro_batches = 5, .join_weights = 2}, 8));
  check(serial_equivalence<TestType>(task, samples, Hybrid<Interleaved>{.mesh = {1, 2, 2}, .micro_batches = 2}, 4));
  check(serial_equivalence<TestType>(task, samples, Hybrid<>{.mesh = {2, 1, 2}, .micro_batches = 2, .unit_elements = 100}, 4));
  check(serial_equivalence<TestType>(task, samples, Hybrid<GPipe>{.mesh = {2, 2, 1}, .micro_batches = 2}, 4));
  check(serial_equivalence<TestType>(task, samples, Hybrid<>{.mesh = {2, 1, 1}}, 2));
  check(serial_equivalence<TestType>(task, uneven, Hybrid<>{.mesh = {2, 2, 2}, .micro_batches = 3}, 8, {.steps = 60}));
}

TEST_CASE("Hybrid makes sound plans for every mesh and every cut between layers", "[parallel][verify][tensor][mesh]") {
  const auto task = deep(5);
  for (const int data : {1, 2})
    for (const int pipeline : {1, 2, 3})
      for (const int tensor : {1, 2, 4})
        for (const int micro_batches : {1, 3}) {
          const auto is_sound = [&](const auto& strategy) {
            const int ranks = static_cast<int>(strategy.mesh.size());
            const nn::Outline outline = nn::outline(placed(strategy, task.model, {0, ranks}, task.loss), pdp::Shape{8});
            const auto all = plans(strategy, outline, ranks);
            CHECK(explain(verify(outline, all), all) == "the plan is sound");
          };
          is_sound(Hybrid<>{.mesh = {data, pipeline, tensor}, .micro_batches = micro_batches});
          is_sound(Hybrid<ZeroBubble>{.mesh = {data, pipeline, tensor}, .micro_batches = micro_batches});
        }
  for (int cut = 1; cut < 17; ++cut) {  // also within a pair of divided layers
    const Hybrid<> strategy{.mesh = {1, 2, 2}, .micro_batches = 2, .cuts = {cut}};
    const nn::Outline outline = nn::outline(placed(strategy, deep(5).model, {0, 4}, task.loss), pdp::Shape{8});
    if (cut >= outline.size()) break;
    const auto all = plans(strategy, outline, 4);
    INFO(cut);
    CHECK(explain(verify(outline, all), all) == "the plan is sound");
    check(serial_equivalence<comm::Thread>(task, tasks::samples(100), strategy, 4, {.steps = 40}));
  }
}

TEST_CASE("Trainer with divided layers predicts, evaluates and returns parameters like Single", "[parallel][tensor]") {
  const auto samples = tasks::samples(50);
  const pdp::TrainerOptions options{.global_batch = 20, .seed = 7};
  const std::vector<float> x = pdp::testing::normal(11 * 8, 5);
  const auto alone = [&] {
    std::tuple<std::vector<float>, double, double, std::vector<pdp::checkpoint::Tensor>> found;
    pdp::testing::ranks<comm::Thread>(1, [&](auto& world) {
      pdp::Trainer trainer{world, Single{}, three_layers, options};
      trainer.fit(samples, {.epochs = 2, .progress = false}, [](const auto&) {});
      const auto totals = trainer.evaluate(samples);
      found = {trainer.predict(x), totals.mean_loss(), totals.correct, trainer.parameters()};
      return 0;
    });
    return found;
  }();
  const auto& outputs = std::get<0>(alone);
  const double loss = std::get<1>(alone), correct = std::get<2>(alone);
  const auto& parameters = std::get<3>(alone);
  const auto same = [&](const auto& strategy, int size) {
    pdp::testing::ranks<comm::Thread>(size, [&](auto& world) {
      pdp::Trainer trainer{world, strategy, three_layers, options};
      trainer.fit(samples, {.epochs = 2, .progress = false}, [](const auto&) {});
      const auto found = trainer.predict(x);
      const auto totals = trainer.evaluate(samples);
      trainer.check_parameters();
      const auto whole = trainer.parameters();
      const std::lock_guard lock{checks_mutex};
      CHECK(found.size() == outputs.size());
      for (std::size_t i = 0; i < std::min(found.size(), outputs.size()); ++i) CHECK(found[i] == Approx(outputs[i]).margin(1e-4));
      CHECK(totals.mean_loss() == Approx(loss).epsilon(1e-4));
      CHECK(totals.correct == correct);
      CHECK(totals.rows == 50);
      if (world.rank() > 0) return 0;
      CHECK(whole.size() == parameters.size());
      for (std::size_t t = 0; t < std::min(whole.size(), parameters.size()); ++t) {
        CHECK(whole[t].name == parameters[t].name);
        CHECK(whole[t].shape == parameters[t].shape);
        for (std::size_t i = 0; i < whole[t].values.size(); ++i) CHECK(whole[t].values[i] == Approx(parameters[t].values[i]).margin(1e-4));
      }
      return 0;
    });
  };
  same(TensorParallel{}, 2);
  same(TensorParallel{}, 4);
  same(AnyStrategy{Hybrid<>{.mesh = {2, 2, 2}, .micro_batches = 2}}, 8);
  same(AnyStrategy{DataParallel{}}, 2);
}

TEST_CASE("Trainer::parameters returns the bits given to set_parameters, also for divided layers", "[parallel][tensor][checkpoint]") {
  std::vector<pdp::checkpoint::Tensor> whole;
  pdp::testing::ranks<comm::Thread>(1, [&](auto& world) {
    pdp::Trainer trainer{world, Single{}, three_layers, {.global_batch = 8, .seed = 3}};
    whole = trainer.parameters();
    return 0;
  });
  pdp::testing::ranks<comm::Thread>(4, [&](auto& world) {
    pdp::Trainer same_seed{world, TensorParallel{}, three_layers, {.global_batch = 8, .seed = 3}};
    pdp::Trainer trainer{world, Hybrid<>{.mesh = {2, 1, 2}}, three_layers, {.global_batch = 8, .seed = 4}};
    trainer.set_parameters(whole, "memory");
    for (const auto& found : {same_seed.parameters(), trainer.parameters()}) {
      if (world.rank() > 0) continue;
      REQUIRE(found.size() == whole.size());
      for (std::size_t t = 0; t < whole.size(); ++t) CHECK(found[t].values == whole[t].values);
    }
    return 0;
  });
}

TEST_CASE("Trainer::check_parameters finds a parameter that one rank of a Hybrid mesh has changed", "[parallel][tensor]") {
  const auto change = [](const char* name, int rank, const std::string& words) {
    pdp::testing::ranks<comm::Thread>(4, [&](auto& world) {
      pdp::Trainer trainer{world, Hybrid<>{.mesh = {2, 1, 2}}, three_layers, {.global_batch = 8}};
      trainer.check_parameters();
      trainer.engine().stage().for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
        if (world.rank() == rank && parameter.full_name() == name) values.back() += 1;
      });
      std::string said;
      try {
        trainer.check_parameters();
      } catch (const pdp::ParametersDiffer& error) {
        said = error.what();
      }
      const std::lock_guard lock{checks_mutex};
      CHECK_THAT(said, Contains(name) && Contains(words));
      return 0;
    });
  };
  change("0.weight", 3, "rank 3 has other values than rank 1");
  change("2.bias", 1, "rank 1 has other values than rank 0");
}

TEST_CASE("TensorParallel and Hybrid reject models and meshes that they cannot divide", "[parallel][tensor][bad input]") {
  const auto refuse = [](const auto& task, const AnyStrategy& strategy, int size, const std::string& words) {
    pdp::testing::ranks<comm::Thread>(size, [&](auto& world) {
      std::string said;
      try {
        pdp::Trainer trainer{world, strategy, task, {.global_batch = 8}};
      } catch (const pdp::Error& error) {
        said = error.what();
      }
      const std::lock_guard lock{checks_mutex};
      CHECK_THAT(said, Contains(words));
      return 0;
    });
  };
  refuse(three_layers, TensorParallel{}, 5, "layer 0 (Linear) has 24 outputs, which cannot be divided evenly over the 5 ranks");
  refuse(divided_by_hand, TensorParallel{}, 5, "layer 1 (ColumnParallel) has 24 outputs, which cannot be divided evenly over the 5 ranks");
  constexpr pdp::Task nothing{nn::Sequential{nn::Linear{8, 4}, nn::Relu{}}, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 1}};
  refuse(nothing, TensorParallel{}, 2, "tensor parallelism needs two nn::Linear with only elementwise layers between them");
  refuse(three_layers, Hybrid<>{.mesh = {2, 2, 1}}, 3, "a mesh of 2 (data) x 2 (pipeline) x 1 (tensor) has 4 ranks, but the world has 3");
  refuse(three_layers, Hybrid<>{.mesh = {2, 0, 1}}, 2, "each axis is at least 1");
  refuse(three_layers, Hybrid<>{.mesh = {1, 12, 1}}, 12, "cannot be cut into 12 stages");
  constexpr pdp::Task sharded_end{nn::Sequential{nn::Replicate{}, nn::ColumnParallel{8, 4}}, pdp::loss::MeanSquaredError{},
                                  pdp::optim::Sgd{.lr = 1}};
  refuse(sharded_end, TensorParallel{}, 2, "the loss needs all of them");
  CHECK_THROWS_WITH(pdp::describe(sharded_end, TensorParallel{}, 2, {.global_batch = 8}), Contains("the loss needs all of them"));
  refuse(three_layers, Hybrid<>{.mesh = {2, 1, 1}, .cuts = {2}}, 2, "the mesh has no pipeline");
  refuse(three_layers, Hybrid<>{.mesh = {2, 1, 1}, .micro_batches = 0}, 2, "micro_batches = 0");
  refuse(three_layers, Hybrid<>{.mesh = {1, 65536, 65536}}, 2, "has 4294967296 ranks, but the world has 2");
}

TEST_CASE("verify rejects faulty plans of divided layers and names the fault", "[parallel][verify][tensor]") {
  const Hybrid<> strategy{.mesh = {2, 2, 2}, .micro_batches = 2};
  const nn::Outline outline = nn::outline(placed(strategy, deep(5).model, {0, 8}, pdp::loss::CrossEntropy{}), pdp::Shape{8});
  const std::vector<Plan> sound = plans(strategy, outline, 8);
  using Choose = std::function<bool(const Instruction&)>;
  /// Removes the first chosen instruction from the steps of all ranks, or of one rank.
  const auto without = [&](const Choose& chosen, int rank = -1) {
    std::vector<Plan> altered = sound;
    for (int each = 0; each < 8; ++each)
      if (rank < 0 || rank == each)
        std::erase_if(altered[static_cast<std::size_t>(each)].step,
                      [&, taken = false](const Instruction& i) mutable { return !taken && chosen(i) && (taken = true); });
    return altered;
  };
  const auto refuse = [&](const std::vector<Plan>& altered, const std::string& words) {
    const Verdict verdict = verify(outline, altered);
    INFO(explain(verdict, altered));
    CHECK_FALSE(verdict);
    CHECK_THAT(explain(verdict, altered), Contains(words));
  };
  const auto is_sum = [](Op op, pdp::plan::Tensor tensor) {
    return [=](const Instruction& i) { return i.op == op && i.tensor == tensor; };
  };
  constexpr auto activation = pdp::plan::Tensor::activation, gradient = pdp::plan::Tensor::gradient;
  refuse(without(is_sum(Op::sum_start, activation)), "waits for a call that was never started");
  refuse(without(is_sum(Op::sum_wait, activation)), "that is not yet summed over the group");
  refuse(without(is_sum(Op::sum_wait, gradient)), "that is not yet summed over the group");
  refuse(without([&](const Instruction& i) { return i.op == Op::share_loss; }), "needs the other ranks' parts of the loss");
  refuse(without(is_sum(Op::sum_start, gradient), 3), "a call that was never started");

  const auto alter = [&](const std::function<void(Instruction&)>& change, int rank = -1) {
    std::vector<Plan> altered = sound;
    for (int each = 0; each < 8; ++each)
      if (rank < 0 || rank == each)
        for (Instruction& i : altered[static_cast<std::size_t>(each)].step) change(i);
    return altered;
  };
  const auto over = [&](int group) {
    return alter([&, group](Instruction& i) {
      if (i.op == Op::sum_start || i.op == Op::sum_wait) i.group = static_cast<std::int16_t>(group);
    });
  };
  refuse(over(Mesh::data_group), "uses a group that is not the tensor-parallel group");
  refuse(over(0), "uses a group that is not the tensor-parallel group");
  refuse(alter([](Instruction& i) {
           if (i.op == Op::reduce_start || i.op == Op::reduce_wait) i.group = Mesh::tensor_group;
         }),
         "reduces a unit over a group other than its own");
  std::vector<Plan> twice = sound;  // a sum that is computed twice
  for (Plan& plan : twice) {
    const auto end = std::ranges::find_if(plan.step, [](const Instruction& i) { return i.op == Op::sum_wait; });
    const Instruction wait = *end;
    Instruction start = wait;
    start.op = Op::sum_start;
    plan.step.insert(end + 1, {start, wait});
  }
  refuse(twice, "sums a value that is not partial");
  std::vector<Plan> crossed = sound;  // reductions between ranks that hold different parts of the layers
  for (Plan& plan : crossed) std::swap(plan.groups[0], plan.groups[2]);
  refuse(crossed, "does not hold each part of the layers once, in their order");
  std::vector<Plan> mixed = sound;  // ranks of a tensor-parallel group that do not take the same rows
  for (int rank = 0; rank < 8; ++rank) {
    const Mesh::Coordinates own = strategy.mesh.coordinates(rank);
    mixed[static_cast<std::size_t>(rank)].groups[2] = {((own.data + own.tensor) % 2) * 2 + own.pipeline, own.tensor};
  }
  refuse(mixed, "do not take the same rows");
  std::vector<Plan> apart = sound;  // data shards whose gradients are never summed
  for (Plan& plan : apart) {
    for (Unit& unit : plan.units) unit.group = -1;
    std::erase_if(plan.step, [](const Instruction& i) { return i.op == Op::reduce_start || i.op == Op::reduce_wait; });
  }
  refuse(apart, "do not take each share of the data once");
  std::vector<Plan> elsewhere = sound;
  for (Plan& plan : elsewhere) plan.tensor_group = 17;
  refuse(elsewhere, "names a group that the plan does not have");
  std::vector<Plan> undivided = sound;
  for (Plan& plan : undivided) plan.tensor = {};
  refuse(undivided, "divides the layers into another number of parts than the model");
  const auto totals_again = [](const Instruction& i) { return i.op == Op::totals_wait; };
  std::vector<Plan> doubled = sound;
  for (Plan& plan : doubled) {
    const auto end = std::ranges::find_if(plan.step, totals_again);
    plan.step.insert(end, collective(Op::totals_start));
  }
  refuse(doubled, "takes the totals twice");
}

TEST_CASE("verify rejects plans that overwrite the memory of a sum or never add up its terms", "[parallel][verify][tensor]") {
  const auto task = deep(4);
  const nn::Outline outline = nn::outline(placed(TensorParallel{}, task.model, {0, 2}, task.loss), pdp::Shape{8});
  const std::vector<Plan> sound = plans(TensorParallel{}, outline, 2);
  /// Inserts an instruction before (behind = 0) or after (behind = 1) the chosen one, and returns the explanation of verify.
  const auto with = [&](const Instruction& more, const Instruction& chosen, int behind) {
    std::vector<Plan> altered = sound;
    for (Plan& plan : altered) plan.step.insert(std::ranges::find(plan.step, chosen) + behind, more);
    const Verdict verdict = verify(outline, altered);
    CHECK_FALSE(verdict);
    return explain(verdict, altered);
  };
  // Replicate 6, ColumnParallel 7: gradient 6 is the sum of the terms that ColumnParallel writes at boundary 7, in the same memory.
  constexpr auto activation = pdp::plan::Tensor::activation, gradient = pdp::plan::Tensor::gradient;
  const Instruction start = sum(Op::sum_start, gradient, 0, 6, 0), wait = sum(Op::sum_wait, gradient, 0, 6, 0);
  CHECK_THAT(with(compute(Op::backward_input, 0, 7, 8), start, 1), Contains("overwrites a value that is being summed"));
  CHECK_THAT(with(compute(Op::backward_input, 0, 7, 8), wait, 1), Contains("needs an activation or a gradient that has been overwritten"));
  // RowParallel 3, AllReduce 4: activation 5 is the sum of the terms that RowParallel writes at boundary 4.
  CHECK_THAT(with(compute(Op::forward, 0, 3, 4), sum(Op::sum_start, activation, 0, 5, 0), 1),
             Contains("overwrites a value that is being summed"));
  CHECK_THAT(with(compute(Op::forward, 0, 3, 4), sum(Op::sum_wait, activation, 0, 5, 0), 1),
             Contains("needs an activation or a gradient that has been overwritten"));
  std::vector<Plan> left = sound;
  for (Plan& plan : left) {  // terms that no sum uses
    plan.evaluate.push_back(compute(Op::forward, 0, 3, 5));
  }
  CHECK_THAT(explain(verify(outline, left), left), Contains("leaves partial values that are never summed"));
}

TEST_CASE("verify rejects a loss after share_loss of another micro-batch", "[parallel][verify][tensor]") {
  const nn::Outline outline = nn::outline(placed(TensorParallel{}, three_layers.model, {0, 2}, three_layers.loss), pdp::Shape{8});
  std::vector<Plan> both = plans(TensorParallel{2}, outline, 2);
  for (Plan& plan : both) {
    const auto of = [&](int m) { return sum(Op::share_loss, pdp::plan::Tensor::activation, m, outline.size(), 0); };
    std::erase(plan.step, of(1));
    const auto loss = std::ranges::find(plan.step, compute(Op::loss, 1, outline.size(), outline.size()));
    plan.step.insert(loss, {of(1), of(0)});
  }
  CHECK_THAT(explain(verify(outline, both), both), Contains("needs the other ranks' parts of the loss"));
}

TEST_CASE("TensorParallel sums the gradient of a layer's input while its backward_weight runs", "[parallel][plan][tensor]") {
  const auto task = deep(4);
  const nn::Outline outline = nn::outline(placed(TensorParallel{}, task.model, {0, 2}, task.loss), pdp::Shape{8});
  const Plan plan = TensorParallel{}.plan(outline, {0, 2});
  std::vector<std::string> names;
  for (const Instruction& i : plan.step)
    if (i.op != Op::count_start && i.op != Op::count_wait) names.push_back(describe(i));
  const auto at = [&](const std::string& name) {
    const auto found = std::ranges::find(names, name);
    INFO(name);
    REQUIRE(found != names.end());
    return found - names.begin();
  };
  // Replicate 0, ColumnParallel 1, Tanh 2, RowParallel 3, AllReduce 4, Tanh 5, Replicate 6, ColumnParallel 7, Tanh 8, RowParallel 9,
  // AllReduce 10.
  CHECK(at("sum_wait activation 5 of micro-batch 0 in group 0") == at("sum_start activation 5 of micro-batch 0 in group 0") + 1);
  CHECK(at("sum_start gradient 6 of micro-batch 0 in group 0") < at("backward_weight micro-batch 0, layers 7 to 7"));
  CHECK(at("sum_wait gradient 6 of micro-batch 0 in group 0") > at("backward_weight micro-batch 0, layers 7 to 7"));
  CHECK(at("sum_wait gradient 6 of micro-batch 0 in group 0") + 1 == at("backward_input micro-batch 0, layers 5 to 5"));
  CHECK(std::ranges::find(names, "sum_start gradient 0 of micro-batch 0 in group 0") == names.end());  // no layer needs it
}

}  // namespace tensor_test
