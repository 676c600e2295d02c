#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/launch/start/host_list.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

using Names = std::vector<std::string>;

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
}

/// A host name, split at its last number.
struct Cut {
  std::string before, digits, after;

  explicit Cut(const std::string& host) : before{host} {
    const std::size_t last = host.find_last_of("0123456789");
    if (last == std::string::npos) return;
    const std::size_t previous = host.find_last_not_of("0123456789", last);
    const std::size_t first = previous == std::string::npos ? 0 : previous + 1;
    before = host.substr(0, first);
    digits = host.substr(first, last + 1 - first);
    after = host.substr(last + 1);
  }
};

/// Compresses a list as Slurm does: neighbours share brackets if only their last number differs.
std::string compress(const Names& hosts) {
  std::string list;
  for (std::size_t i = 0; i < hosts.size();) {
    if (!list.empty()) list += ',';
    const Cut name{hosts[i]};
    if (name.digits.empty()) {
      list += hosts[i++];
      continue;
    }
    std::string ranges;
    for (bool goes_on = true; goes_on;) {
      const std::string first = Cut{hosts[i]}.digits;
      std::uint64_t last = std::stoull(first);
      const auto is = [&](const std::string& digits) { return i < hosts.size() && hosts[i] == name.before + digits + name.after; };
      for (++i; is(padded(last + 1, first.size())); ++i) ++last;
      ranges += ranges.empty() ? first : "," + first;
      if (last > std::stoull(first)) ranges += "-" + padded(last, first.size());
      if (i == hosts.size()) break;
      const Cut next{hosts[i]};
      goes_on = !next.digits.empty() && next.before == name.before && next.after == name.after;
    }
    list += name.before + "[" + ranges + "]" + name.after;
  }
  return list;
}

std::string message(std::string_view list) {
  try {
    launch::hosts(list);
  } catch (const pdp::UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("HostList expands a compressed list in order", "[launch][host_list]") {
  const std::map<std::string, Names> lists{
      {"login", {"login"}},
      {"n1,n2", {"n1", "n2"}},
      {"n[01-04,7],gpu3", {"n01", "n02", "n03", "n04", "n7", "gpu3"}},
      {"n[8-11]", {"n8", "n9", "n10", "n11"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[098-101]", {"n098", "n099", "n100", "n101"}},
      {"n[007]", {"n007"}},
      {"n[3,1,2,2]", {"n3", "n1", "n2", "n2"}},
      {"rack[1-2]node[01-03]", {"rack1node01", "rack1node02", "rack1node03", "rack2node01", "rack2node02", "rack2node03"}},
      {"a[1,3][5-6]", {"a15", "a16", "a35", "a36"}},
      {"n[1-2]-ib.cluster.example", {"n1-ib.cluster.example", "n2-ib.cluster.example"}},
      {"[1-2]", {"1", "2"}},
      {"a_b-c.d", {"a_b-c.d"}},
      {"n[18446744073709551614-18446744073709551615]", {"n18446744073709551614", "n18446744073709551615"}},
  };
  for (const auto& [list, expected] : lists) {
    INFO(list);
    CHECK(launch::hosts(list) == expected);
    CHECK(launch::first_host(list) == expected.front());
    CHECK(launch::HostList{list}.size() == expected.size());
  }
}

TEST_CASE("HostList rejects a malformed list and says what it expected and found", "[launch][host_list]") {
  const auto [list, expected, found] = GENERATE(table<std::string, std::string, std::string>({
      {"", "host's name", "at its start; found its end"},
      {",", "host's name", "at its start; found ','"},
      {"n1,", "host's name", "after 'n1,'; found its end"},
      {"n1,,n2", "host's name", "after 'n1,'; found ','"},
      {"n 1", "host's name", "after 'n'; found ' '"},
      {"n1\nn2", "host's name", "after 'n1'; found '\\n'"},
      {"n\xff", "host's name", "after 'n'; found '\\xff'"},
      {std::string{"n\0", 2}, "host's name", "after 'n'; found '\\x00'"},
      {"n1]", "host's name", "found ']'"},
      {"n[1-3]]", "host's name", "after 'n[1-3]'; found ']'"},
      {"n[", "a number", "after 'n['; found its end"},
      {"n[]", "a number", "found ']'"},
      {"n[1,]", "a number", "after 'n[1,'; found ']'"},
      {"n[,1]", "a number", "found ','"},
      {"n[-3]", "a number", "found '-'"},
      {"n[1-]", "a number", "after 'n[1-'; found ']'"},
      {"n[a-b]", "a number", "found 'a'"},
      {"n[[1]]", "a number", "found '['"},
      {"n[1-3", "',' or ']'", "after 'n[1-3'; found its end"},
      {"n[1[2]]", "',' or ']'", "found '['"},
      {"n[1-3-5]", "',' or ']'", "found '-'"},
      {"n[000x233]", "',' or ']'", "after 'n[000'; found 'x'"},
      {"n[1-3],[", "a number", "found its end"},
      {"n[5-3]", "count upwards", "found 5-3"},
      {"n[18446744073709551616]", "below 2^64", "18446744073709551616"},
      {"n[1-99999999999999999999]", "below 2^64", "99999999999999999999"},
  }));
  INFO(list);
  CHECK_THAT(message(list), Contains(expected) && Contains(found));
  CHECK_THROWS_AS(launch::first_host(list), pdp::UsageError);
}

TEST_CASE("HostList rejects a list of more than 1,000,000 hosts before it expands the list", "[launch][host_list]") {
  CHECK(launch::hosts("n[1-1000000]").back() == "n1000000");
  CHECK(launch::hosts("a[1-1000]b[1-1000]").size() == launch::most_hosts);
  for (const std::string list :
       {"n[0-1000000]", "n[1-1000000],m", "n[1-999999,1-2]", "a[1-1000]b[1-1001]", "n[0-18446744073709551615]",
        "n[1-18446744073709551615,1-18446744073709551615]", "[1-999999][1-999999][1-999999][1-999999]", "a[1-600000],b[1-600000]"}) {
    INFO(list);
    CHECK_THAT(message(list), Contains("at most 1000000 hosts"));
  }
}

TEST_CASE("HostList rejects host names of more than 255 letters", "[launch][host_list]") {
  const std::string longest(launch::longest_host, 'n');
  CHECK(launch::first_host(longest) == longest);
  CHECK_THAT(message(longest + "n"), Contains("at most 255 letters") && Contains("256"));
  CHECK_THAT(message(longest.substr(2) + "[1-100]"), Contains("256"));
  CHECK_THAT(message("n[" + std::string(300, '0') + "1]"), Contains("302"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[1]";
  CHECK_THAT(message(many), Contains("at most 255 letters"));
}

TEST_CASE("HostList expands lists of 300,001 hosts and rejects 3,000,000 open brackets", "[launch][host_list]") {
  std::string names, numbers = "n[";
  for (int i = 0; i < 300'000; ++i) {
    names += "n,";
    numbers += "1,";
  }
  CHECK(launch::hosts(names + "n").size() == 300'001);
  CHECK(launch::hosts(numbers + "1]").size() == 300'001);
  CHECK_THAT(message(std::string(3'000'000, '[')), Contains("a number"));
}

TEST_CASE("HostList expands a compressed list of random hosts to the same hosts", "[launch][host_list][property]") {
  std::mt19937 random{random_seed()};
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const Names before{"n", "gpu", "rack2-", "a.b_", ""}, after{"", "", "-ib", ".x"};
  for (int trial = 0; trial < 2000; ++trial) {
    Names hosts;
    for (std::size_t groups = 1 + below(4); groups > 0; --groups) {
      const std::string front = before[below(before.size())], back = after[below(after.size())];
      std::uint64_t number = below(trial % 2 == 0 ? 12 : 1200);
      for (std::size_t left = 1 + below(6), width = 1 + below(4); left > 0; --left) {
        hosts.push_back(front + padded(number, width) + back);
        number += below(3);
        if (below(8) == 0) width = 1 + below(4);
      }
      if (below(4) == 0) hosts.emplace_back("login");
    }
    const std::string list = compress(hosts);
    INFO(list);
    REQUIRE(launch::hosts(list) == hosts);
    REQUIRE(launch::first_host(list) == hosts.front());
  }
}

TEST_CASE("HostList expands several brackets to every combination, the last bracket varying fastest", "[launch][host_list][property]") {
  std::mt19937 random{random_seed()};
  for (int trial = 0; trial < 200; ++trial) {
    std::string list;
    Names expected{""};
    for (std::size_t brackets = 1 + random() % 4; brackets > 0; --brackets) {
      const std::uint64_t first = random() % 20, count = 1 + random() % 5, width = 1 + random() % 3;
      list += "r[" + padded(first, width) + "-" + padded(first + count - 1, width) + "]";
      Names longer;
      for (const std::string& host : expected)
        for (std::uint64_t number = first; number < first + count; ++number) longer.push_back(host + "r" + padded(number, width));
      expected = std::move(longer);
    }
    INFO(list);
    REQUIRE(launch::hosts(list) == expected);
  }
}

TEST_CASE("HostList returns nonempty hosts or throws UsageError if a list is damaged at random", "[launch][host_list][property]") {
  std::mt19937 random{random_seed()};
  const std::string letters = "n019[]-,. x";
  int refused = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string list = "n[01-04,7],rack[1-2]node[01-03]-ib";
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % list.size();
      if (random() % 3 == 0)
        list.erase(at, 1 + random() % 3);
      else if (random() % 2 == 0)
        list[at] = letters[random() % letters.size()];
      else
        list.insert(at, 1, letters[random() % letters.size()]);
      if (list.empty()) list = "n";
    }
    INFO(list);
    try {
      const launch::HostList parsed{list};
      if (parsed.size() > 10'000) continue;
      const Names hosts = parsed.all();
      REQUIRE(hosts.size() == parsed.size());
      REQUIRE(hosts.front() == parsed.first());
      REQUIRE(std::ranges::none_of(hosts, [](const std::string& host) { return host.empty(); }));
    } catch (const pdp::UsageError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}
