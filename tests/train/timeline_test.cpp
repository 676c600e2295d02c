#include <pdp/train/step_timeline.hpp>
#include <pdp/train/timeline.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/trainer.hpp>

#include "catch.hpp"
#include "strategy/tasks.hpp"

namespace timeline_test {

namespace comm = pdp::comm;
using pdp::engine::Timeline;

namespace {

using Pipeline = pdp::strategy::Pipeline<>;

/// Returns the recorded timeline of one step of a pipeline of two ranks.
Timeline recorded(const pdp::TrainerOptions& options = {.global_batch = 16}) {
  Timeline timeline;
  pdp::testing::ranks<comm::Thread>(2, [&](auto& world) {
    pdp::Trainer trainer{world, Pipeline{.micro_batches = 3}, tasks::classifier, options};
    const std::vector<float> x = pdp::testing::normal(16 * 8, 1);
    const auto classes = tasks::classes_of(x);
    const bool is_empty_at_first = trainer.timeline().times.empty();
    trainer.step(x, classes, 16);
    trainer.trace(true);
    trainer.step(x, classes, 16);
    trainer.trace(false);
    trainer.step(x, classes, 16);
    Timeline found = trainer.timeline();
    const std::lock_guard lock{checks_mutex};
    CHECK(is_empty_at_first);
    if (world.rank() > 0)
      CHECK(found.times.empty());
    else
      timeline = std::move(found);
    return 0;
  });
  return timeline;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Returns a timeline with fixed times: two ranks, of which the second waits for the first.
Timeline by_hand() {
  using namespace pdp::engine;
  using namespace pdp::strategy;
  const Instruction forward = compute(Op::forward, 7, 0, 2), wait = message(Op::receive_wait, Tensor::activation, 7, 2, 0);
  return {{{forward, message(Op::send_start, Tensor::activation, 7, 2, 1)}, {wait}}, {{{0, 1e-3}, {1e-3, 1.25e-3}}, {{0.5e-3, 2e-3}}}};
}

}  // namespace

TEST_CASE("Trainer::timeline has the times of every instruction of every rank in order", "[train][timeline]") {
  const bool takes_norm = GENERATE(false, true);
  const Timeline timeline = recorded({.global_batch = 16, .clip_norm = takes_norm ? 1.0 : 0.0});
  REQUIRE(timeline.times.size() == 2);
  const auto outline = pdp::nn::outline(tasks::classifier.model, pdp::Shape{8});
  for (int rank = 0; rank < 2; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto plan = Pipeline{.micro_batches = 3}.plan(outline, {rank, 2});
    if (takes_norm) plan = pdp::plan::with_norm(std::move(plan));
    CHECK(timeline.lists[r] == plan.step);
    REQUIRE(timeline.times[r].size() == plan.step.size());
    double before = 0;
    for (const auto& [begin, end] : timeline.times[r]) {
      CHECK(begin >= before);
      CHECK(end >= begin);
      before = end;
    }
    CHECK(before > 0);
    CHECK(timeline.seconds() >= before);
  }
}

TEST_CASE("chrome_trace_of writes a timeline in the trace format of Chrome", "[train][timeline]") {
  const auto trace = nlohmann::json::parse(pdp::chrome_trace_of(by_hand()));
  const auto& events = trace.at("traceEvents");
  REQUIRE(events.size() == 5);
  CHECK(events[0] == nlohmann::json{{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", 0}, {"args", {{"name", "rank 0"}}}});
  CHECK(events[1] == nlohmann::json{{"name", "forward"},
                                    {"cat", "forward"},
                                    {"ph", "X"},
                                    {"pid", 0},
                                    {"tid", 0},
                                    {"ts", 0.0},
                                    {"dur", 1000.0},
                                    {"args", {{"instruction", "forward micro-batch 7, layers 0 to 1"}}}});
  CHECK(events[2].at("cat") == "start");
  CHECK(events[4].at("tid") == 1);
  CHECK(events[4].at("cat") == "wait");
  CHECK(events[4].at("ts") == 500.0);
  CHECK(events[4].at("dur") == 1500.0);
  CHECK(nlohmann::json::parse(pdp::chrome_trace_of(Timeline{})).at("traceEvents").empty());
  CHECK(nlohmann::json::parse(pdp::chrome_trace_of(recorded())).at("traceEvents").size() > 40);
}

TEST_CASE("svg_of draws a timeline with one row for each rank", "[train][timeline]") {
  const std::string svg = pdp::svg_of(by_hand());
  CHECK_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\"") && EndsWith("</svg>\n"));
  CHECK_THAT(svg, Contains(">rank 0</text>") && Contains(">rank 1</text>") && !Contains(">rank 2<"));
  CHECK_THAT(svg, Contains("<title>receive_wait activation 2 of micro-batch 7 from rank 0 of group 0: 1500.0 us</title>"));
  CHECK_THAT(svg, Contains("x=\"70.00\" y=\"40\" width=\"565.00\""));   // half of the time
  CHECK_THAT(svg, Contains("x=\"352.50\" y=\"76\" width=\"847.50\""));  // the second row, from a quarter to the end
  CHECK_THAT(svg, Contains(">7</text>"));                               // the micro-batch
  CHECK_THAT(svg, Contains(">200 us</text>") && Contains(">2000 us</text>") && !Contains(">100 us</text>"));
  CHECK(count(svg, "<rect") == 1 + 7 + 3);  // background, legend, instructions
  CHECK(count(svg, "<rect") == count(svg, "/>") - count(svg, "<line") + count(svg, "</rect>"));
}

TEST_CASE("StepTimeline writes the requested step, or the last one if there are fewer steps", "[train][timeline]") {
  const auto folder = std::filesystem::temp_directory_path() / ("pdp_step_timeline_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const int steps = GENERATE(1, 2, 4);
  pdp::testing::ranks<comm::Thread>(2, [&](auto& world) {
    pdp::Trainer trainer{world, Pipeline{.micro_batches = 3}, tasks::classifier, {.global_batch = 16}};
    pdp::StepTimeline timeline{trainer, folder / "step.json", world.rank(), 1};
    const std::vector<float> x = pdp::testing::normal(16 * 8, 1);
    Timeline wanted;
    for (int step = 0; step < steps; ++step) {
      trainer.step(x, tasks::classes_of(x), 16);
      timeline.after_step(step);
      if (step <= 1) wanted = trainer.timeline();
    }
    timeline.write();
    if (world.rank() > 0) return 0;
    std::ifstream file{folder / "step.json"};
    CHECK(std::string{std::istreambuf_iterator<char>{file}, {}} == pdp::chrome_trace_of(wanted));
    CHECK(wanted.times.size() == 2);
    return 0;
  });
  std::filesystem::remove_all(folder);
}

TEST_CASE("StepTimeline traces only the first step of a run that continues behind the requested step", "[train][timeline]") {
  const auto folder = std::filesystem::temp_directory_path() / ("pdp_late_timeline_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  pdp::comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  pdp::StepTimeline timeline{trainer, folder / "step.json", 0, 4};
  const std::vector<float> x = pdp::testing::normal(16 * 8, 1);
  trainer.step(x, tasks::classes_of(x), 16);
  timeline.after_step(1000);
  const std::string first = pdp::chrome_trace_of(trainer.timeline());
  trainer.step(x, tasks::classes_of(x), 16);
  timeline.after_step(1001);
  CHECK(pdp::chrome_trace_of(trainer.timeline()) == first);
  std::filesystem::remove_all(folder);
}

TEST_CASE("StepTimeline rejects a file that cannot be written when it is constructed", "[train][timeline]") {
  pdp::comm::Self world;
  pdp::Trainer trainer{world, pdp::strategy::Single{}, tasks::classifier, {.global_batch = 16}};
  CHECK_THROWS_AS((pdp::StepTimeline{trainer, "step.png", 0}), pdp::ConfigError);
  CHECK_THROWS_AS((pdp::StepTimeline{trainer, "/no/such/folder/step.svg", 0}), pdp::FileError);
}

TEST_CASE("write_timeline chooses the format by the extension of the file", "[train][timeline]") {
  const auto folder = std::filesystem::temp_directory_path() / ("pdp_timeline_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto read = [](const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    return text.str();
  };
  pdp::write_timeline(folder / "step.svg", by_hand());
  pdp::write_timeline(folder / "step.json", by_hand());
  CHECK(read(folder / "step.svg") == pdp::svg_of(by_hand()));
  CHECK(read(folder / "step.json") == pdp::chrome_trace_of(by_hand()));
  CHECK_THROWS_WITH(pdp::write_timeline(folder / "step.png", by_hand()), Contains("step.png") && Contains(".svg or .json"));
  CHECK_THROWS_AS(pdp::write_timeline(folder / "nowhere" / "step.svg", by_hand()), pdp::FileError);
  std::filesystem::remove_all(folder);
}

}  // namespace timeline_test
