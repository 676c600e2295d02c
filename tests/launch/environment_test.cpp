#include <map>
#include <string>

#include <pdp/launch/environment.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

using Settings = std::map<std::string, std::string>;

launch::Place place(const Settings& settings) {
  return launch::Place::from([&](const char* name) -> const char* {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : found->second.c_str();
  });
}

const Settings third_of_four{
    {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};

Settings with(Settings settings, const std::string& name, const std::string& value) {
  settings[name] = value;
  return settings;
}
Settings without(Settings settings, const std::string& name) {
  settings.erase(name);
  return settings;
}

}  // namespace

TEST_CASE("none of the variables means one rank alone", "[launch][environment]") {
  const launch::Place alone = place({});
  CHECK(alone.rank == 0);
  CHECK(alone.size == 1);
  CHECK(alone.timeout == std::chrono::seconds{60});
  CHECK_FALSE(alone.hosts_store);
}

TEST_CASE("the variables say which rank this is and where the others are", "[launch][environment]") {
  const launch::Place third = place(with(third_of_four, "PDP_TIMEOUT", "2.5"));
  CHECK(third.rank == 2);
  CHECK(third.size == 4);
  CHECK(third.local_rank == 1);
  CHECK(third.master_address == "10.0.0.1");
  CHECK(third.master_port == 29500);
  CHECK(third.timeout == std::chrono::milliseconds{2500});
  CHECK_FALSE(third.hosts_store);
  CHECK(place(with(third_of_four, "RANK", "0")).hosts_store);
  CHECK_FALSE(place(with(with(third_of_four, "RANK", "0"), "PDP_STORE", "launcher")).hosts_store);
  CHECK(place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size == 1);
}

TEST_CASE("variables that contradict each other are refused, with both in the message", "[launch][environment]") {
  struct Case {
    Settings settings;
    std::string first, second;
  };
  const auto [settings, first, second] = GENERATE(values<Case>({
      {without(third_of_four, "WORLD_SIZE"), "RANK is set (2)", "WORLD_SIZE is not"},
      {without(third_of_four, "RANK"), "WORLD_SIZE is set (4)", "RANK is not"},
      {{{"LOCAL_RANK", "0"}}, "LOCAL_RANK is set", "RANK and WORLD_SIZE are not"},
      {{{"MASTER_ADDR", "a"}}, "MASTER_ADDR is set", "RANK and WORLD_SIZE are not"},
      {with(third_of_four, "RANK", "4"), "RANK is 4", "WORLD_SIZE is 4"},
      {with(third_of_four, "RANK", "-1"), "RANK must be", "-1"},
      {with(third_of_four, "RANK", "two"), "RANK must be a number", "'two'"},
      {with(third_of_four, "RANK", "2x"), "RANK must be a number", "'2x'"},
      {with(third_of_four, "RANK", ""), "RANK must be a number", "''"},
      {with(third_of_four, "RANK", "99999999999"), "RANK must be", "99999999999"},
      {with(third_of_four, "WORLD_SIZE", "0"), "WORLD_SIZE must be", "0"},
      {with(third_of_four, "LOCAL_RANK", "4"), "LOCAL_RANK is 4", "WORLD_SIZE is 4"},
      {with(third_of_four, "LOCAL_RANK", "-1"), "LOCAL_RANK must be", "-1"},
      {without(third_of_four, "MASTER_ADDR"), "WORLD_SIZE is 4", "MASTER_ADDR is not set"},
      {without(third_of_four, "MASTER_PORT"), "WORLD_SIZE is 4", "MASTER_PORT is not set"},
      {with(third_of_four, "MASTER_PORT", "0"), "MASTER_PORT must be", "0"},
      {with(third_of_four, "MASTER_PORT", "65536"), "MASTER_PORT must be", "65536"},
      {with(third_of_four, "PDP_TIMEOUT", "0"), "PDP_TIMEOUT", "above 0"},
      {with(third_of_four, "PDP_TIMEOUT", "-3"), "PDP_TIMEOUT", "-3"},
      {with(third_of_four, "PDP_TIMEOUT", "soon"), "PDP_TIMEOUT", "'soon'"},
      {with(third_of_four, "PDP_TIMEOUT", "nan"), "PDP_TIMEOUT", "nan"},
      {with(third_of_four, "PDP_STORE", "here"), "PDP_STORE", "'here'"},
  }));
  try {
    place(settings);
    FAIL("nothing was thrown");
  } catch (const pdp::UsageError& error) {
    CHECK_THAT(error.what(), Contains(first) && Contains(second));
  }
}
