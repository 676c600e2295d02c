#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/launch/start/starter.hpp>

/// Asks Slurm for the address of a node. Clusters may give nodes names that only Slurm can resolve.
namespace pdp::launch {

/// Returns the address of a node in SLURM_NODE_ALIASES, which Slurm sets for cloud nodes; nothing if it is not listed. An entry has the
/// form name:address:hostname, with an IPv6 address in brackets; commas separate entries.
inline std::optional<std::string> address_in_aliases(std::string_view aliases, std::string_view node) {
  while (!aliases.empty()) {
    std::string_view entry = aliases.substr(0, aliases.find(','));
    aliases.remove_prefix(std::min(entry.size() + 1, aliases.size()));
    if (!entry.starts_with(node) || entry.substr(node.size(), 1) != ":") continue;
    entry.remove_prefix(node.size() + 1);
    const bool brackets = entry.starts_with('[');
    if (brackets) entry.remove_prefix(1);
    const std::string_view address = entry.substr(0, entry.find(brackets ? ']' : ':'));
    if (!address.empty()) return std::string{address};
  }
  return std::nullopt;
}

/// Returns the field NodeAddr in the output of `scontrol show node --oneliner` for one node; nothing if it has no value.
inline std::optional<std::string> address_in_description(std::string_view words) {
  constexpr std::string_view key{" NodeAddr="};
  const std::size_t at = words.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  words.remove_prefix(at + key.size());
  const std::string_view address = words.substr(0, words.find_first_of(" \n"));
  if (address.empty() || address == "(null)") return std::nullopt;
  return std::string{address};
}

namespace detail {

/// Returns the output of `scontrol show node`, or its first 64 KiB. Returns an empty string if scontrol cannot be run, or has not ended at
/// the deadline.
inline std::string description_of_node(const std::string& node, comm::TimePoint deadline) {
  constexpr std::size_t longest = 64 * 1024;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const comm::Descriptor read_end{ends[0]};
  comm::Descriptor write_end{ends[1]};
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return {};
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::array<std::string, 5> words{"scontrol", "--oneliner", "show", "node", node};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t process = -1;
  const int error = ::posix_spawnp(&process, "scontrol", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {};
  write_end.close();
  std::string said;
  while (said.size() < longest) {
    pollfd polled{.fd = read_end.get(), .events = POLLIN, .revents = 0};
    const timespec left = comm::time_left(deadline);
    const int ready = ::ppoll(&polled, 1, &left, nullptr);
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0 && comm::Clock::now() < deadline) continue;
    if (ready <= 0) {  // the output is incomplete, so an address may be cut off
      said.clear();
      break;
    }
    char bytes[4096];
    const ssize_t read = ::read(read_end.get(), bytes, sizeof bytes);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) break;
    said.append(bytes, as_size(read));
  }
  ::kill(process, SIGKILL);  // no effect if it has ended
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return said;
}

}  // namespace detail

/// Returns the address that Slurm has for a node, or nothing if Slurm gives none before the deadline.
inline std::optional<std::string> slurm_node_address(const Variables& variable, const std::string& node, comm::TimePoint deadline) {
  if (const char* aliases = variable("SLURM_NODE_ALIASES"))
    if (std::optional<std::string> address = address_in_aliases(aliases, node)) return address;
  return address_in_description(detail::description_of_node(node, deadline));
}

}  // namespace pdp::launch
