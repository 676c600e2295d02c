#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// The rendezvous of the ranks of a job, as a URL (PDP_RENDEZVOUS, --rendezvous):
///
/// - env://                      given by MASTER_ADDR and MASTER_PORT, or by the launcher
/// - tcp://host:port             rank 0 hosts the store there; an IPv6 address is in brackets: tcp://[fd00::1]:29500
/// - file:///absolute/path       the store is a folder that all ranks see
struct RendezvousUrl {
  enum class Kind : std::uint8_t { environment, tcp, file };

  Kind kind = Kind::environment;
  std::string host{};      // of a tcp:// URL, without brackets
  std::uint16_t port = 0;  // of a tcp:// URL
  std::string folder{};    // of a file:// URL

  static constexpr std::size_t longest = 4096;  // characters of a URL
  /// Parses a URL. Throws UsageError if it is malformed. The message begins with `name`, the option or variable.
  static RendezvousUrl parse(std::string_view name, std::string_view url);
  /// Parses the option (--rendezvous), or PDP_RENDEZVOUS if it is empty. Returns env:// if both are empty.
  static RendezvousUrl from(std::string_view option, const Variables& variable);
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/rendezvous_url.hpp>
#endif
