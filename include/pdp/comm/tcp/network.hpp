#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// Returns a text that identifies the processes that share a loopback device: the kernel's boot id and the network namespace.
inline std::string this_network() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string boot;
  std::getline(file, boot);
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/net", space.data(), space.size());
  return boot + '/' + std::string(space.data(), length > 0 ? as_size(length) : 0);
}

/// Throws UsageError, the same on all ranks, if a rank listens at a loopback address that a rank on another host cannot reach. `places`:
/// one text for each rank, which begins with its address and ends with its this_network(), separated by blanks.
inline void check_loopback(const std::vector<std::string>& places) {
  // Returns a rank's this_network(); empty if its text lacks one.
  const auto network = [](const std::string& place) {
    const std::size_t last = place.rfind(' ');
    return last == place.find(' ') ? std::string_view{} : std::string_view{place}.substr(last);
  };
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const std::string address = places[rank].substr(0, places[rank].find(' '));
    if (!address.starts_with("127.") && address != "::1") continue;
    for (std::size_t other = 0; other < places.size(); ++other) {
      if (!network(places[rank]).empty() && !network(places[other]).empty() && network(places[other]) != network(places[rank]))
        throw UsageError{text("rank ", rank, " listens at ", address, ", which only its own host reaches, but rank ", other,
                              " is on another one; PDP_INTERFACE on the host of rank ", rank,
                              " must name an interface that other hosts reach, or not be set")};
    }
  }
}

}  // namespace pdp::comm::tcp
