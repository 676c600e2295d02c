#pragma once

/// Definitions for pdp/launch/start/rendezvous_url.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/net/host_name.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

PDP_INLINE RendezvousUrl RendezvousUrl::parse(std::string_view name, std::string_view url) {
  // The URL is used in messages, in file names and as a C string.
  if (std::ranges::any_of(url, [](char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == 127; }))
    throw UsageError{text(name, " contains control characters, such as a line break; remove them")};
  const auto refuse = [&](const auto&... why) { throw UsageError{text(name, " is ", in_quotes(url), ": ", why...)}; };
  if (url.size() > longest) refuse("it must have at most ", longest, " characters");
  if (url == "env://") return {};

  constexpr std::string_view file{"file://"}, tcp{"tcp://"};
  if (url.starts_with(file)) {
    const std::string_view path = url.substr(file.size());
    if (!path.starts_with('/'))
      refuse("the path must begin with '/', since the ranks may run in different folders, as in file:///shared/job-17");
    if (path.find_first_not_of('/') == std::string_view::npos) refuse("the path must name a folder of this job's own, not the root");
    return {.kind = Kind::file, .folder = std::string{path}};
  }
  if (!url.starts_with(tcp)) refuse("it must begin with env://, tcp:// or file://, as in tcp://10.0.0.1:29500");

  std::string_view host, rest = url.substr(tcp.size());
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse("a ']' must follow the address");
    host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (host.find(':') == std::string_view::npos) refuse("the brackets must hold an IPv6 address, as in tcp://[fd00::1]:29500");
  } else {
    host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(host.size());
    if (std::ranges::count(rest, ':') > 1) refuse("an IPv6 address must be in brackets, as in tcp://[fd00::1]:29500");
  }
  if (host.empty()) refuse("a host must follow tcp://, as in tcp://10.0.0.1:29500");
  if (host.find_first_of("/@?#[] ") != std::string_view::npos) refuse(in_quotes(host), " is not the name or address of a host");
  check_host(text("the host of ", name), std::string{host});
  if (!rest.starts_with(':')) refuse("a port must follow the host, as in tcp://10.0.0.1:29500");
  const auto port = parse_number<int>(text("the port of ", name), rest.substr(1), 1, 65535);
  return {.kind = Kind::tcp, .host = std::string{host}, .port = static_cast<std::uint16_t>(port)};
}

PDP_INLINE RendezvousUrl RendezvousUrl::from(std::string_view option, const Variables& variable) {
  if (!option.empty()) return parse("--rendezvous", option);
  const char* url = variable("PDP_RENDEZVOUS");
  return url != nullptr && *url != '\0' ? parse("PDP_RENDEZVOUS", url) : RendezvousUrl{};
}

}  // namespace pdp::launch
