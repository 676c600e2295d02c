#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/testing/equivalence.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/timeline.hpp>

#include "catch.hpp"
#include "comma_locale.hpp"
#include "strategy/tasks.hpp"

namespace locale_test {

namespace {

/// Returns the files and texts that pdp writes, in one string.
std::string written() {
  using namespace pdp::engine;
  using namespace pdp::strategy;
  const files::TemporaryFolder folder;
  {
    pdp::EpochLog log{folder / "log"};
    log.write({.number = 1234, .loss = 1.25, .accuracy = 0.5, .seconds = 12345.5}, 0.75);
  }
  const Timeline timeline{{{compute(Op::forward, 1234, 0, 2)}}, {{{0.00025, 1.5}}}};
  pdp::write_timeline(folder / "step.svg", timeline);
  pdp::write_timeline(folder / "step.json", timeline);
  pdp::checkpoint::save(folder / "weights", {{"0.weight", {1500, 2}, std::vector<float>(3000, 0.5f)}});
  std::string all;
  for (const char* name : {"log", "step.svg", "step.json", "weights"}) all += files::read(folder / name);
  all += pdp::describe(tasks::classifier, DataParallel{}, 2, {.global_batch = 1234}).text();
  all += pdp::text(0.5, ' ', 1e8, ' ', 1234567, ' ', 1.5e-7f);
  return all;
}

}  // namespace

TEST_CASE("pdp writes and reads the same text in a locale with decimal commas", "[train][locale]") {
  const std::string expected = written();
  CHECK_THAT(expected, Contains("\"loss\": 1.25, \"accuracy\": 0.5") && Contains("0.5 100000000 1234567 1.5"));
  const CommaLocale locale;
  std::ostringstream stream;
  stream << 1234.5;
  CHECK(stream.str() == "1.234,5");  // the locale is in use
  if (locale.is_set()) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%.1f", 1.5);
    CHECK(std::string{digits} == "1,5");
  } else {
    WARN("C's functions are not tested: there is no localedef");
  }
  CHECK(written() == expected);

  const auto timeout = pdp::launch::Place::timeout_from([](const char*) { return "1.5"; });
  CHECK(timeout == std::chrono::milliseconds{1500});
  CHECK(pdp::launch::parse_number("a rate", "1e-3", 0.0, 1.0) == 1e-3);
  CHECK_THROWS_AS(pdp::launch::parse_number("a rate", "0,5", 0.0, 1.0), pdp::UsageError);
  const files::TemporaryFolder folder;
  pdp::checkpoint::save(folder / "weights", {{"0.weight", {1500, 2}, std::vector<float>(3000, 0.5f)}});
  CHECK(pdp::checkpoint::load(folder / "weights").at(0).shape == std::vector<pdp::Index>{1500, 2});
}

}  // namespace locale_test
