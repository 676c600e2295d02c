#include <pdp/comm/thread.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <cmath>

#include "catch.hpp"
#include "engine/two_halves.hpp"
#include "strategy/tasks.hpp"

namespace comm = pdp::comm;
namespace nn = pdp::nn;
using namespace pdp::engine;
using namespace pdp::strategy;
using pdp::Index;

namespace {

using Task = decltype(tasks::classifier);
using ClassifierEngine = Engine<comm::Thread, pdp::nn::LeafTypes<decltype(Task::model)>, decltype(Task::loss), decltype(Task::optimizer)>;

template <Strategy S>
struct Made {
  Made(comm::Thread& world, const S& strategy, Index rows)
      : engine{world,
               strategy.plan(nn::outline(tasks::classifier.model, pdp::Shape{8}), {world.rank(), world.size()}),
               tasks::classifier.model,
               pdp::Shape{8},
               tasks::classifier.loss,
               tasks::classifier.optimizer,
               {.rows = rows, .seed = 3}} {}
  ClassifierEngine engine;
};

/// Rows [first, last) of a fixed dataset.
struct SomeRows {
  SomeRows(Index first, Index last) : x{pdp::testing::normal(100 * 8, 7)}, targets{tasks::classes_of(x)}, first_{first}, last_{last} {}
  [[nodiscard]] ClassifierEngine::StepBatch batch(Index global_rows = 0) const {
    return {{x.data() + first_ * 8, last_ - first_, 8},
            std::span{targets}.subspan(static_cast<std::size_t>(first_), static_cast<std::size_t>(last_ - first_)),
            global_rows};
  }
  std::vector<float> x;
  std::vector<std::int32_t> targets;

 private:
  Index first_, last_;
};

/// Computes the classifier's 4 outputs for one sample of 8 values, from its parameters and the definition of the layers.
std::vector<double> forward_by_hand(ClassifierEngine& engine, const float* x) {
  std::vector<std::span<float>> parameters;  // weight [8][24], bias, weight [24][4], bias
  engine.stage().for_each_parameter([&](const nn::Parameter&, std::span<float> values) { parameters.push_back(values); });
  std::vector<double> hidden(24), outputs(4);
  for (std::size_t j = 0; j < 24; ++j) {
    double sum = parameters[1][j];
    for (std::size_t i = 0; i < 8; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(parameters[0][i * 24 + j]);
    hidden[j] = std::tanh(sum);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    outputs[j] = parameters[3][j];
    for (std::size_t i = 0; i < 24; ++i) outputs[j] += hidden[i] * static_cast<double>(parameters[2][i * 4 + j]);
  }
  return outputs;
}

template <class F>
std::invoke_result_t<F&, comm::Thread&> alone(F&& f) {
  return pdp::testing::ranks<comm::Thread>(1, std::forward<F>(f)).front();
}

}  // namespace

TEST_CASE("Engine::predict and evaluate match a forward pass by hand and change no parameter", "[parallel][engine]") {
  struct Found {
    std::vector<double> outputs, by_hand;
    Totals totals, again;
    std::vector<float> before, after;
  };
  const SomeRows rows{0, 9};
  const Found found = alone([&](comm::Thread& world) {
    Made made{world, Single{}, 16};
    ClassifierEngine& engine = made.engine;
    Found f;
    const auto values = engine.stage().values();
    f.before.assign(values.begin(), values.end());
    const auto outputs = engine.predict(rows.batch().x).values();
    f.outputs.assign(outputs.begin(), outputs.end());
    for (Index row = 0; row < 9; ++row)
      for (const double each : forward_by_hand(engine, rows.x.data() + row * 8)) f.by_hand.push_back(each);
    f.totals = engine.evaluate(rows.batch());
    f.again = engine.evaluate(rows.batch());
    f.after.assign(values.begin(), values.end());
    return f;
  });
  CHECK(pdp::testing::relative_difference(found.outputs, found.by_hand) < 1e-6);
  double loss = 0, correct = 0;
  for (std::size_t row = 0; row < 9; ++row) {
    const auto first = found.by_hand.begin() + static_cast<std::ptrdiff_t>(row * 4);
    double total = 0;
    for (std::size_t j = 0; j < 4; ++j) total += std::exp(first[static_cast<std::ptrdiff_t>(j)]);
    loss += std::log(total) - first[rows.targets[row]];
    correct += std::max_element(first, first + 4) - first == rows.targets[row] ? 1 : 0;
  }
  CHECK(found.totals.loss == Approx(loss).epsilon(1e-6));
  CHECK(found.totals.correct == correct);
  CHECK(found.totals.rows == 9);
  CHECK(found.totals.mean_loss() == Approx(loss / 9).epsilon(1e-6));
  CHECK(found.totals.accuracy() == correct / 9);
  CHECK(found.again.loss == found.totals.loss);
  CHECK(found.before == found.after);
  CHECK(std::isnan(Totals{}.mean_loss()));
  CHECK(std::isnan(Totals{}.accuracy()));
}

TEST_CASE("Engine::step returns the loss from before its update, summed over all ranks", "[parallel][engine]") {
  const SomeRows all{0, 16};
  const double before = alone([&](comm::Thread& world) { return Made{world, Single{}, 16}.engine.evaluate(all.batch()).loss; });
  const auto totals = pdp::testing::ranks<comm::Thread>(2, [](comm::Thread& world) {
    Made made{world, DataParallel{}, 8};
    const SomeRows share{8 * world.rank(), 8 * world.rank() + 8};
    std::vector<Totals> steps;
    for (int step = 0; step < 30; ++step) steps.push_back(made.engine.step(share.batch()));
    if (made.engine.steps() != 30) throw std::logic_error{"another number of steps"};
    return steps;
  });
  CHECK(totals[0].front().loss == Approx(before).epsilon(1e-6));
  CHECK(totals[0].front().rows == 16);
  CHECK(totals[0].back().loss < 0.3 * before);
  for (std::size_t step = 0; step < 30; ++step) {
    CHECK(totals[0][step].loss == totals[1][step].loss);
    CHECK(totals[0][step].correct == totals[1][step].correct);
  }
}

TEST_CASE("Engine::step changes no parameter if the learning-rate factor is zero", "[parallel][engine]") {
  const bool same = alone([](comm::Thread& world) {
    Made made{world, Single{}, 16};
    const std::vector<float> before(made.engine.stage().values().begin(), made.engine.stage().values().end());
    made.engine.step(SomeRows{0, 16}.batch(), 0);
    const bool still = pdp::testing::same_bits(before, made.engine.stage().values());
    made.engine.step(SomeRows{0, 16}.batch(), 1);
    return still && !pdp::testing::same_bits(before, made.engine.stage().values());
  });
  CHECK(same);
}

TEST_CASE("Engine::step gives equal losses whether the ranks or the caller count the global rows", "[parallel][engine]") {
  const std::array<Index, 4> cuts{0, 5, 5, 13};  // rank 1 has no rows
  const auto losses = [&](Index global_rows) {
    return pdp::testing::ranks<comm::Thread>(3, [&](comm::Thread& world) {
      Made made{world, DataParallel{.accumulate = 2}, 8};
      const auto rank = static_cast<std::size_t>(world.rank());
      const SomeRows share{cuts[rank], cuts[rank + 1]};
      std::vector<double> each;
      for (int step = 0; step < 10; ++step) {
        const Totals totals = made.engine.step(share.batch(global_rows));
        if (totals.rows != 13) throw std::logic_error{"another number of rows"};
        each.push_back(totals.mean_loss());
      }
      return each;
    });
  };
  const auto counted = losses(0), known = losses(13);
  const auto single = alone([](comm::Thread& world) {
    Made made{world, Single{}, 13};
    std::vector<double> each;
    for (int step = 0; step < 10; ++step) each.push_back(made.engine.step(SomeRows{0, 13}.batch()).mean_loss());
    return each;
  });
  CHECK(counted == known);
  CHECK(pdp::testing::relative_difference(counted[1], single) < 1e-6);
}

TEST_CASE("Engine::step throws ConfigError on every rank if no rank has a row", "[parallel][engine]") {
  const auto words = pdp::testing::ranks<comm::Thread>(3, [](comm::Thread& world) -> std::string {
    Made made{world, DataParallel{}, 8};
    try {
      made.engine.step(SomeRows{0, 0}.batch());
    } catch (const pdp::ConfigError& error) {
      world.barrier();  // keeps each rank in the world until the others have thrown
      return error.what();
    }
    return "nothing was thrown";
  });
  for (const std::string& each : words) CHECK(each == "a step had no rows on any rank; end the epoch when the data ends");
}

TEST_CASE("Engine rejects a batch that does not fit and then accepts one that does", "[parallel][engine]") {
  alone([](comm::Thread& world) {
    Made made{world, Single{.accumulate = 2}, 8};
    ClassifierEngine& engine = made.engine;
    const SomeRows nine{0, 9}, four{0, 4};
    const auto message = [](auto&& call) -> std::string {
      try {
        call();
      } catch (const pdp::ShapeError& error) {
        return error.what();
      }
      return "no ShapeError";
    };
    std::vector<std::pair<std::string, std::string>> found{
        {message([&] { engine.step(nine.batch()); }), "the batch has 9 rows, but there is memory for at most 8"},
        {message([&] {
           engine.evaluate({nine.batch().x, nine.targets});
         }),
         "at most 4"},
        {message([&] { engine.predict(nine.batch().x); }), "at most 4"},
        {message([&] {
           engine.step({{four.x.data(), 4, 7}, std::span{four.targets}.first(4)});
         }),
         "the samples have 7 values, but the model expects 8"},
        {message([&] {
           engine.step({four.batch().x, std::span{four.targets}.first(3)});
         }),
         "a batch of 4 rows has 3 target elements; expected 4"},
        {message([&] {
           engine.evaluate({four.batch().x, {}});
         }),
         "has 0 target elements"}};
    for (const auto& [what, expected] : found)
      if (what.find(expected) == std::string::npos) throw std::logic_error{expected + " was expected, but: " + what};
    engine.step(four.batch());  // the engine still works
    return 0;
  });
}

TEST_CASE("Engine::step rejects a class without an output, and the other ranks throw instead of hanging", "[parallel][engine]") {
  const auto errors = pdp::testing::errors<comm::Thread>(3, [](comm::Thread& world) {
    Made made{world, DataParallel{}, 8};
    SomeRows rows{0, 8};
    if (world.rank() == 1) rows.targets[3] = 4;
    for (int step = 0; step < 3; ++step) made.engine.step(rows.batch());
  });
  CHECK(errors[1].is<pdp::ConfigError>());
  CHECK_THAT(errors[1].what(), Contains("is of class 4, but the model gives 4 outputs, for classes 0 to 3"));
  CHECK(errors[0].lost_rank() == 1);
  CHECK(errors[2].lost_rank() == 1);
}

TEST_CASE("Engine gives all ranks equal initial parameters even if their seeds differ", "[parallel][engine]") {
  const auto values = pdp::testing::ranks<comm::Thread>(3, [](comm::Thread& world) {
    const nn::Outline outline = nn::outline(tasks::classifier.model, pdp::Shape{8});
    ClassifierEngine engine{world,
                            DataParallel{}.plan(outline, {world.rank(), world.size()}),
                            tasks::classifier.model,
                            pdp::Shape{8},
                            tasks::classifier.loss,
                            tasks::classifier.optimizer,
                            {.rows = 8, .seed = static_cast<std::uint64_t>(world.rank())}};
    std::vector<float> all;
    for (std::size_t unit = 0; unit < engine.plan().units.size(); ++unit) {
      const auto of_unit = engine.stage().values(static_cast<int>(unit));
      all.insert(all.end(), of_unit.begin(), of_unit.end());
    }
    return all;
  });
  CHECK(!values[0].empty());
  CHECK(values[0] == values[1]);
  CHECK(values[0] == values[2]);
}

TEST_CASE("Engine evaluates and predicts a model that is split over two ranks", "[parallel][engine]") {
  const SomeRows rows{0, 8};
  const Totals expected = alone([&](comm::Thread& world) { return Made{world, Single{}, 8}.engine.evaluate(rows.batch()); });
  const auto totals = pdp::testing::ranks<comm::Thread>(2, [&](comm::Thread& world) {
    Made made{world, TwoHalves{.cut = 2}, 8};
    const auto outputs = made.engine.predict(rows.batch().x);
    if (world.rank() == 1 && outputs.rows != 8) throw std::logic_error{"no outputs"};
    return made.engine.evaluate(rows.batch());
  });
  CHECK((totals[0].loss == 0 && totals[0].rows == 0));  // rank 0 computes no loss
  CHECK(totals[1].rows == 8);
  CHECK(totals[1].loss == Approx(expected.loss).epsilon(1e-6));
}
