#include <pdp/launch/start/host_list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// Checks that HostList, for any input, returns size() names, none of them empty or too long, or throws UsageError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const pdp::launch::HostList list{std::string_view{reinterpret_cast<const char*>(bytes), size}};
    if (list.size() > pdp::launch::most_hosts) std::abort();
    const std::string first = list.first();
    if (list.size() > 10'000) return 0;  // so that one input takes milliseconds
    const std::vector<std::string> hosts = list.all();
    if (hosts.size() != list.size() || hosts.front() != first) std::abort();
    for (const std::string& host : hosts)
      if (host.empty() || host.size() > pdp::launch::longest_host) std::abort();
  } catch (const pdp::UsageError&) {
  }
  return 0;
}
