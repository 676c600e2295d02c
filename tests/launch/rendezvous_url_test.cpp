#include <string>

#include <pdp/core/error.hpp>
#include <pdp/launch/start/rendezvous_url.hpp>

#include "catch.hpp"

using pdp::launch::RendezvousUrl;

namespace {

RendezvousUrl parse(const std::string& url) { return RendezvousUrl::parse("--rendezvous", url); }

}  // namespace

TEST_CASE("RendezvousUrl::parse reads env://, file:// and tcp:// URLs", "[launch][rendezvous]") {
  CHECK(parse("env://").kind == RendezvousUrl::Kind::environment);
  CHECK(parse("file:///shared/job 17").kind == RendezvousUrl::Kind::file);
  CHECK(parse("file:///shared/job 17").folder == "/shared/job 17");
  const auto [url, host, port] = GENERATE(table<std::string, std::string, int>({
      {"tcp://10.0.0.1:29500", "10.0.0.1", 29500},
      {"tcp://node-7.cluster:1", "node-7.cluster", 1},
      {"tcp://[::1]:65535", "::1", 65535},
      {"tcp://[fd00::1]:4711", "fd00::1", 4711},
  }));
  CHECK(parse(url).kind == RendezvousUrl::Kind::tcp);
  CHECK(parse(url).host == host);
  CHECK(parse(url).port == port);
}

TEST_CASE("RendezvousUrl::parse rejects a malformed URL with its flag, the URL and the reason", "[launch][rendezvous]") {
  const auto [url, words] = GENERATE(table<std::string, std::string>({
      {"", "must begin with env://, tcp:// or file://"},
      {"10.0.0.1:29500", "must begin with env://, tcp:// or file://"},
      {"TCP://a:1", "must begin with env://, tcp:// or file://"},
      {"env://a", "must begin with env://, tcp:// or file://"},
      {"tcp://", "a host must follow tcp://"},
      {"tcp://:1", "a host must follow tcp://"},
      {"tcp://a", "a port must follow the host"},
      {"tcp://[::1]", "a port must follow the host"},
      {"tcp://[::1]1", "a port must follow the host"},
      {"tcp://[::1:1", "a ']' must follow the address"},
      {"tcp://[]:1", "must hold an IPv6 address"},
      {"tcp://[a]:1", "must hold an IPv6 address"},
      {"tcp://::1:29500", "must be in brackets"},
      {"tcp://a/b:1", "is not the name or address"},
      {"tcp://user@a:1", "is not the name or address"},
      {"tcp://a b:1", "is not the name or address"},
      {"file://", "must begin with '/'"},
      {"file://shared/job", "must begin with '/'"},
      {"file:///", "not the root"},
      {"file:///" + std::string(5000, 'a'), "at most 4096"},
  }));
  CHECK_THROWS_AS(parse(url), pdp::UsageError);
  CHECK_THROWS_WITH(parse(url), StartsWith("--rendezvous is '" + url.substr(0, 20)) && Contains(words));
  for (const std::string& letters : {std::string{"file:///a\nb"}, std::string{"file:///a\0b", 11}, std::string{"tcp://a\x1b:1"}})
    CHECK_THROWS_WITH(parse(letters), StartsWith("--rendezvous contains control characters"));
  for (const char* port : {"tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://a:x", "tcp://a:1/b", "tcp://a:-1"})
    CHECK_THROWS_WITH(parse(port), StartsWith("the port of --rendezvous must be"));
}
