#include <pdp/train/report.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/report/html.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include "catch.hpp"
#include "data/files.hpp"
#include "report/markup.hpp"
#include "strategy/tasks.hpp"

namespace report_test {

namespace comm = pdp::comm;
using markup::Page;

/// Trains on 64 samples in four steps an epoch, with a report.
template <class World, class Strategy>
double train(World& world, const Strategy& strategy, const std::filesystem::path& file, int epochs, std::int64_t throws_after = -1) {
  pdp::Trainer trainer{world, strategy, tasks::classifier, {.global_batch = 16, .seed = 1}};
  pdp::Report report{trainer, file, {.title = "A <small> training"}};
  double loss = 0;
  trainer.fit(
      tasks::samples(64), {.epochs = epochs},
      [&](const pdp::Epoch& epoch) {
        report.epoch(epoch);
        report.metric("test accuracy", 0.5);
      },
      [&](std::int64_t step, const auto& totals) {
        loss = totals.mean_loss();
        report.step(step, totals);
        if (step == throws_after) throw std::runtime_error{"an error of the program"};
      });
  report.write();
  return loss;
}

TEST_CASE("Totals have the time of a step, and none of an evaluation", "[train][report]") {
  comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  const std::vector<float> x = pdp::testing::normal(16 * 8, 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto totals = trainer.step(x, tasks::classes_of(x));
  const std::chrono::duration<double> most = std::chrono::steady_clock::now() - begin;
  CHECK(totals.seconds > 0);
  CHECK(totals.seconds <= most.count());
  CHECK(trainer.evaluate(tasks::samples(16)).seconds == 0);
}

TEST_CASE("Report writes the figures of a training on two ranks", "[train][report]") {
  const files::TemporaryFolder folder;
  const auto file = folder / "run.html";
  double loss = 0;
  pdp::testing::ranks<comm::Thread>(2, [&](auto& world) {
    const double last = train(world, pdp::strategy::Pipeline<>{.micro_batches = 4}, world.rank() == 0 ? file : "/nowhere/x.png", 3);
    if (world.rank() == 0) loss = last;
    return 0;
  });
  CHECK(folder.names() == std::vector<std::string>{"run.html"});
  const std::string html = files::read(file);
  const Page page{html};
  CHECK_THAT(page.at("summary").text, Contains("steps12\n") && Contains("ranks2\n") && Contains("parameters316\n") &&
                                          Contains("last loss" + pdp::report::number(loss) + "\n"));
  CHECK_THAT(page.at("loss").text, Contains("Steps 0 to 11"));
  CHECK_THAT(page.at("accuracy").text, Contains("test accuracy"));
  CHECK_THAT(page.at("learning-rate").text, Contains("Learning rate") && Contains("values from 0.1 to 0.1"));
  CHECK_THAT(page.at("timeline").text, Contains("rank 0") && Contains("rank 1") && Contains("forward micro-batch 3"));
  CHECK_THAT(page.at("plan").text, Contains("16 samples a step on 2 ranks, 316 parameters"));
  CHECK_THAT(page.at("environment").text, Contains("2, communicator thread") && Contains("matrix products of floats by"));
  CHECK_THAT(html, Contains("<title>A &lt;small&gt; training</title>"));
  const auto process = std::to_string(::getpid());
  const std::string& ranks = page.at("ranks").text;
  CHECK(ranks.find(process) != ranks.rfind(process));  // both ranks are in this process
  CHECK_FALSE(page.has("warning"));
}

TEST_CASE("Report writes a page after no step and after fewer steps than it traces", "[train][report]") {
  const files::TemporaryFolder folder;
  comm::Self world;
  train(world, pdp::strategy::Single{}, folder / "none.html", 0);
  const Page none{files::read(folder / "none.html")};
  CHECK_THAT(none.at("summary").text, Contains("steps0\n"));
  CHECK_THAT(none.at("timeline").text, Contains("No step was traced"));
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  pdp::Report report{trainer, folder / "one.html"};
  const std::vector<float> x = pdp::testing::normal(16 * 8, 1);
  report.step(0, trainer.step(x, tasks::classes_of(x)));
  report.write();
  const Page one{files::read(folder / "one.html")};
  CHECK_THAT(one.at("summary").text, Contains("steps1\n"));
  CHECK_THAT(one.at("timeline").text, Contains("rank 0") && Contains("forward micro-batch 0"));
}

TEST_CASE("Report takes the epochs, metrics and steps of fit", "[train][report]") {
  const files::TemporaryFolder folder;
  const auto file = folder / "run.html";
  const auto data = tasks::samples(64), test = tasks::samples(16);
  comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  // [report]
  pdp::Report report{trainer, file};
  trainer.fit(
      data, {.epochs = 3},
      [&](const pdp::Epoch& epoch) {
        report.epoch(epoch);
        report.metric("test accuracy", trainer.accuracy(test));
      },
      [&](std::int64_t step, const auto& totals) { report.step(step, totals); });
  report.write();
  // [report]
  CHECK_THAT(Page{files::read(file)}.at("summary").text, Contains("last test accuracy" + pdp::report::number(trainer.accuracy(test))));
}

TEST_CASE("Report shows only the steps of a resumed run and says so", "[train][report]") {
  const files::TemporaryFolder folder;
  comm::Self world;
  for (const int epochs : {2, 3}) {
    pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
    pdp::Report report{trainer, folder / "run.html"};
    trainer.fit(
        tasks::samples(64), {.epochs = epochs, .checkpoint = {.directory = folder / "checkpoints"}},
        [&](const pdp::Epoch& epoch) { report.epoch(epoch); }, [&](std::int64_t step, const auto& totals) { report.step(step, totals); });
    report.write();
  }
  const Page page{files::read(folder / "run.html")};
  CHECK_THAT(page.at("earlier").text, Contains("the steps before 8 are not shown"));
  CHECK_THAT(page.at("summary").text, Contains("steps4\n"));
  CHECK_THAT(page.at("loss").text, Contains("Steps 8 to 11"));
}

TEST_CASE("Report writes the page of a training that an exception ends", "[train][report]") {
  const files::TemporaryFolder folder;
  comm::Self world;
  CHECK_THROWS_WITH(train(world, pdp::strategy::Single{}, folder / "run.html", 3, 6), "an error of the program");
  const Page page{files::read(folder / "run.html")};
  CHECK_THAT(page.at("warning").text, Contains("The training ended before the report was complete"));
  CHECK_THAT(page.at("summary").text, Contains("steps7\n"));
  CHECK_THAT(page.at("ranks").text, Contains(std::to_string(::getpid())));
}

TEST_CASE("Report rejects a file that cannot be written, or has another extension, before the training", "[train][report]") {
  const files::TemporaryFolder folder;
  comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  CHECK_THROWS_AS((pdp::Report{trainer, "/no/such/folder/run.html"}), pdp::FileError);
  CHECK_THROWS_AS((pdp::Report{trainer, folder / "model.safetensors"}), pdp::ConfigError);
  CHECK_THROWS_WITH((pdp::Report{trainer, ""}), Contains("give a name that ends in .html"));
  std::filesystem::create_directory(folder / "folder.html");
  CHECK_THROWS_AS((pdp::Report{trainer, folder / "folder.html"}), pdp::FileError);
  CHECK_NOTHROW(pdp::check_report_file("run.htm"));
}

TEST_CASE("Report keeps the old page if the new one does not fit on the disk", "[train][report]") {
  const files::TemporaryFolder folder;
  files::write(folder / "run.html", "an old page");
  const std::string error = files::in_child([&]() -> std::string {
    comm::Self world;
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    try {
      train(world, pdp::strategy::Single{}, folder / "run.html", 1);
    } catch (const pdp::FileError& found) {
      return found.what();
    }
    return "no error";
  });
  CHECK_THAT(error, Contains("run.html") && !Contains("no error"));
  CHECK(files::read(folder / "run.html") == "an old page");
  CHECK(folder.names().size() == 1);
}

/// An optimizer without a member `lr`.
struct Fixed {
  template <class V>
  struct State {};
  template <class V>
  void update(V& parameter, const V& gradient, State<V>&, const pdp::StepInfo&) const {
    parameter = parameter - 0.1f * gradient;
  }
};

TEST_CASE("Report shows the factor of the schedule if the optimizer has no learning rate", "[train][report]") {
  const files::TemporaryFolder folder;
  comm::Self world;
  const pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{8, 4}}, pdp::loss::MeanSquaredError{}, Fixed{},
                       pdp::optim::Linear{.steps = 4, .to = 0.5f}};
  pdp::Trainer trainer{world, pdp::strategy::Single{}, task, {.global_batch = 16, .clip_norm = 1}};
  pdp::Report report{trainer, folder / "run.html"};
  const std::vector<float> x = pdp::testing::normal(16 * 8, 1), y = pdp::testing::normal(16 * 4, 2);
  for (int step = 0; step < 5; ++step) report.step(step, trainer.step(x, y));
  report.write();
  const Page page{files::read(folder / "run.html")};
  CHECK_THAT(page.at("learning-rate").text, Contains("Factor of the learning rate") && Contains("values from 0.5 to 1."));
  CHECK_FALSE(page.has("accuracy"));  // the loss has no classes
  CHECK(page.has("gradient-norm"));
}

}  // namespace report_test
