#include <pdp/plan/operation.hpp>
#include <pdp/report/activity.hpp>
#include <pdp/report/page.hpp>
#include <pdp/report/record.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pdp/engine/timeline.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/verify/describe.hpp>

#include "catch.hpp"
#include "report/markup.hpp"

namespace report = pdp::report;

namespace page_test {

using markup::Page;
using report::Figures;
using report::Record;

const std::vector<std::string> parts{"summary", "loss",     "accuracy", "learning-rate", "step-time", "step-time-histogram", "throughput",
                                     "memory",  "timeline", "plan",     "ranks",         "numbers",   "environment"};

/// Returns a course with a falling loss and steps of 2 ms.
Record course(int steps) {
  Record record{5};
  for (int step = 0; step < steps; ++step)
    record.step(step, {.loss = 2.0 / (1 + step), .accuracy = 0.5, .rate = 0.125, .rows = 64, .seconds = step < 5 ? 0.5 : 0.002});
  return record;
}

pdp::plan::Description description(int ranks) {
  pdp::plan::Description found{.parameters = 55'050, .global_batch = 256, .ranks = {}, .device = "a device"};
  for (int rank = 0; rank < ranks; ++rank) {
    pdp::plan::RankUse use{};
    use.layers = {{0, 2}};
    use.parameters = 2048 * (rank + 1);
    use.gradients = 1024;
    found.ranks.push_back(use);
  }
  return found;
}

/// Returns a timeline of `count` instructions on each rank.
pdp::engine::Timeline timeline(int ranks, int count) {
  using namespace pdp::plan;
  pdp::engine::Timeline found;
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = found.lists.emplace_back();
    auto& times = found.times.emplace_back();
    for (int at = 0; at < count; ++at) {
      list.push_back(at % 2 == 0 ? compute(Op::forward, at, 0, 2) : message(Op::send_start, Tensor::activation, at, 2, 1));
      times.push_back({1e-3 * at, 1e-3 * at + 9e-4});
    }
  }
  return found;
}

TEST_CASE("Every operation of a plan has an activity in pictures", "[report]") {
  for (const pdp::plan::OpInfo& each : pdp::plan::ops) {
    INFO(each.name);
    CHECK(pdp::report::activity_of(each.op) < pdp::report::activities.size());
  }
}

TEST_CASE("A page has all parts, with the numbers of the course", "[report]") {
  Record record = course(105);
  record.epoch({.number = 0, .loss = 0.75, .accuracy = 0.625, .seconds = 0.25});
  record.metric("test accuracy", 0.875);
  record.metric("perplexity", 12.5);
  Figures figures{.seconds = 65, .plan = description(2), .instructions = {"forward micro-batch 0"}, .timeline = timeline(2, 6)};
  figures.ranks = {{.process = 17, .memory = 3 << 20, .mean = 0.002, .host = "first"}, {.process = 18, .mean = 0.003, .host = "second"}};
  figures.environment = {{"processor", "a fast one"}};
  const Page page{report::page_of(figures, record)};

  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(page.has(part));
  }
  for (const char* chart :
       {"loss", "accuracy", "learning-rate", "step-time", "step-time-histogram", "throughput", "memory", "timeline", "metric-1"}) {
    CAPTURE(chart);
    const markup::Element& element = page.at(chart);
    CHECK(page.count(element, "svg") == 1);
    CHECK(page.count(element, "title") >= 1);
    CHECK(page.count(element, "desc") == 1);
  }
  const std::string& summary = page.at("summary").text;
  CHECK_THAT(summary, Contains("last loss0.01905\n") && Contains("steps105\n") && Contains("last test accuracy0.875\n"));
  CHECK_THAT(summary, Contains("samples/s32,000\n"));  // without the five slow steps
  CHECK_THAT(summary, Contains("time1 min 5 s\n") && Contains("ranks2\n") && Contains("parameters55,050\n"));
  CHECK_THAT(page.at("loss").text, Contains("Steps 0 to 104, values from 0.01905 to 2.") && Contains("Logarithmic scale."));
  CHECK_THAT(page.at("accuracy").text, Contains("batch") && Contains("test accuracy"));
  CHECK_THAT(page.at("learning-rate").text, Contains("values from 0.125 to 0.125"));
  CHECK_THAT(page.at("step-time-histogram").text, Contains("Median 2 ms, 95 % below 2 ms, longest 2 ms."));
  CHECK_THAT(page.at("memory").text, Contains("rank 0") && Contains("3.0 KiB") && Contains("5.0 KiB"));
  CHECK_THAT(page.at("timeline").text, Contains("rank 1") && Contains("forward micro-batch 0, layers 0 to 1: 900 µs"));
  CHECK_THAT(page.at("plan").text,
             Contains("256 samples a step on 2 ranks") && Contains("0 to 1") && Contains("8.0 KiB") && Contains("forward micro-batch 0"));
  CHECK_THAT(page.at("ranks").text, Contains("first17") && Contains("second18") && Contains("3.0 MiB"));
  CHECK_THAT(page.at("environment").text, Contains("processora fast one"));
  CHECK_THAT(page.at("numbers").text, Contains("0.750.625250 ms") && Contains("104"));
  CHECK_FALSE(page.has("warning"));
  CHECK_FALSE(page.has("earlier"));
  CHECK(page.at("metric-1").text.find("perplexity") != std::string::npos);
}

TEST_CASE("A page needs no script, no other file and no network", "[report]") {
  const std::string html = report::page_of({.plan = description(1), .timeline = timeline(1, 3)}, course(20));
  for (const char* word : {"<script", "<link", "<img", "<iframe", "http:", "https:", "url(", "@import", " src=", " href=", " onload"}) {
    CAPTURE(word);
    CHECK(html.find(word) == std::string::npos);
  }
}

TEST_CASE("A page is well formed for no step, one step, values that are not finite and huge ones", "[report]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), most = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> courses{{},        {1.5},        {nan},         {nan, nan, nan},  {1, nan, 2, INFINITY, 3},
                                                 {0, 0, 0}, {-1, -2, -3}, {most, -most}, {1e-320, 1e-300}, {most, most, 1.0}};
  for (const auto& losses : courses) {
    Record record;
    for (std::size_t step = 0; step < losses.size(); ++step)
      record.step(
          static_cast<std::int64_t>(step),
          {.loss = losses[step], .accuracy = losses[step], .rate = losses[step], .gradient_norm = losses[step], .rows = 1, .seconds = 0});
    const std::string html = report::page_of({}, record);
    CAPTURE(losses);
    CHECK_NOTHROW(Page{html});
    const Page page{html};
    for (const std::string& part : parts) CHECK(page.has(part));
    for (const char* bad : {"\"nan", " nan", "inf\"", "-inf ", "Minf", "Mnan", "Lnan", "Linf"}) CHECK(html.find(bad) == std::string::npos);
    std::int64_t count = 0;
    for (const double loss : losses) count += std::isfinite(loss) ? 0 : 1;
    if (count > 0)
      CHECK_THAT(page.at("loss").text, Contains(count == 1 ? "in 1 step, first" : "in " + std::to_string(count) + " steps, first in step"));
  }
}

TEST_CASE("A page escapes every text of the program", "[report]") {
  const std::string evil = "</title></style><script>alert('x')</script>\"&\xff";
  Record record = course(3);
  record.metric(evil + " loss", 1);
  record.metric(evil, 1);
  Figures figures{.title = evil, .warning = evil, .date = evil, .rate_name = evil, .plan = description(1), .instructions = {evil}};
  figures.ranks = {{.host = evil}};
  figures.environment = {{evil, evil}};
  const std::string html = report::page_of(figures, record);
  CHECK(html.find("<script") == std::string::npos);
  const Page page{html};
  CHECK_THAT(page.at("environment").text, Contains("</title></style><script>alert('x')</script>\"&\xef\xbf\xbd"));
}

TEST_CASE("The size of a page does not depend on the number of steps, ranks and instructions beyond some hundreds", "[report]") {
  const auto size = [](int steps, int ranks, int instructions) {
    Figures figures{.plan = description(ranks), .timeline = timeline(ranks, instructions)};
    figures.ranks.resize(static_cast<std::size_t>(ranks));
    figures.instructions.assign(static_cast<std::size_t>(instructions), "forward");
    const std::string html = report::page_of(figures, course(steps));
    const Page page{html};
    CHECK(page.has("timeline"));
    return html.size();
  };
  const std::size_t large = size(100'000, 300, 1000);
  CHECK(large < 2'000'000);
  CHECK(size(1'000'000, 1000, 1001) < large + large / 20);
}

TEST_CASE("A page says if a run continues another one", "[report]") {
  Record record;
  record.step(1200, {.loss = 1});
  const Page page{report::page_of({}, record)};
  CHECK_THAT(page.at("earlier").text, Contains("the steps before 1,200 are not shown"));
}

TEST_CASE("Record rejects more metrics than a page shows", "[report]") {
  Record record;
  for (std::size_t number = 0; number < Record::most_metrics; ++number) record.metric("metric " + std::to_string(number), 1);
  record.metric("metric 3", 2);
  CHECK_THROWS_WITH(record.metric("another", 1), Contains("at most 16 metrics") && Contains("'another'"));
}

TEST_CASE("Record leaves the traced steps out of the statistics of times unless there are no others", "[report]") {
  CHECK(course(3).times().count() == 3);
  CHECK(course(5).times().count() == 5);
  CHECK(course(6).times().count() == 1);
  CHECK(course(6).throughput() == Approx(32'000));
  CHECK(course(100).seconds.high() == 0.5);
}

}  // namespace page_test
