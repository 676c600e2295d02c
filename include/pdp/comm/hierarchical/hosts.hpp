#pragma once

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <pdp/comm/join/roll_call.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::hierarchical {

/// The host of each rank of a world, as a number. Hosts count from 0, in the order of their first ranks.
using Hosts = std::vector<int>;

/// Finds out which ranks share a host. Every rank writes `host` to the store, and rank 0 publishes the number of each rank's host. `host`:
/// a text that is the same for ranks that share memory, and for no others. Throws Timeout, which names the missing ranks, if they do not
/// arrive before the deadline. Throws ConfigError if the numbers in the store are invalid.
inline Hosts find_hosts(const StoreView& store, int rank, int size, const std::string& host, TimePoint deadline) {
  const RollCall roll_call{store, "hierarchical/host/", "hierarchical/hosts", rank, size, deadline};
  roll_call.say(host);
  const std::string all = roll_call.hear([](const std::vector<std::string>& each) {
    std::vector<std::string> names;
    std::string numbers;
    for (const std::string& name : each) {
      const auto number = std::ranges::find(names, name) - names.begin();
      if (number == std::ssize(names)) names.push_back(name);
      numbers += text(number, ' ');
    }
    return numbers;
  });
  Hosts hosts;
  const char *at = all.data(), *const end = at + all.size();
  for (int number = 0; at < end; ++at) {
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || number < 0 || number >= size) break;
    hosts.push_back(number);
    at = after;
  }
  if (hosts.size() != as_size(size))
    throw ConfigError{"the list of the ranks' hosts in the job's store is malformed; do all ranks run the same build?"};
  return hosts;
}

}  // namespace pdp::comm::hierarchical
