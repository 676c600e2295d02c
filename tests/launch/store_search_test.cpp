#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pdp/launch/store_search.hpp>
#include <pdp/launch/tcp_store.hpp>
#include <pdp/launch/tcp_store_server.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;
using pdp::comm::Clock;

namespace {

/// Listens, and takes no notice of those who connect.
class Silent {
 public:
  Silent() {
    std::string why;
    const launch::Address address = launch::resolve("127.0.0.1", 0, why).at(0);
    if (::bind(socket_.get(), address.get(), address.size) != 0 || ::listen(socket_.get(), 8) != 0) throw std::runtime_error{"listen"};
  }
  [[nodiscard]] std::uint16_t port() const { return launch::Address::of(socket_.get()).port(); }

 private:
  pdp::comm::Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

launch::Access access(const std::string& job, const std::string& attempt = {}) { return {.job = {job, attempt}}; }
std::uint16_t found(const std::vector<std::uint16_t>& ports, const launch::Access& access, std::chrono::milliseconds within) {
  return launch::StoreSearch{"127.0.0.1", ports, 1, 2, access}.port(Clock::now() + within);
}
constexpr std::chrono::seconds patience{60};

}  // namespace

TEST_CASE("A rank finds its store among ports that strangers, other jobs and earlier attempts have", "[launch][store]") {
  const Silent silent;
  const launch::TcpStoreServer other{"127.0.0.1", 0, 2, access("other")}, earlier{"127.0.0.1", 0, 2, access("own", "/0")};
  launch::TcpStoreServer own{"127.0.0.1", 0, 2, access("own", "/1")};
  const std::uint16_t closed = launch::TcpStoreServer{}.port();
  const std::vector<std::uint16_t> ports{silent.port(), other.port(), closed, earlier.port(), own.port()};
  REQUIRE(found(ports, access("own", "/1"), patience) == own.port());
  REQUIRE(found(ports, access("own", "/0"), patience) == earlier.port());
  REQUIRE(found(ports, access("other"), patience) == other.port());
  // The search has not taken the rank's place.
  launch::TcpStore store{"127.0.0.1", own.port(), Clock::now() + patience, 1, 2, access("own", "/1")};
  store.set("key", "value");
  CHECK(store.get("key") == "value");
}

TEST_CASE("A rank waits for a store that starts later", "[launch][store]") {
  const Silent silent;
  const std::uint16_t port = launch::TcpStoreServer{}.port();
  std::optional<launch::TcpStoreServer> own;
  std::jthread later{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    own.emplace("127.0.0.1", port, 2, access("own"));
  }};
  CHECK(found({silent.port(), port}, access("own"), patience) == port);
}

TEST_CASE("A search for a store that is nowhere ends at its deadline with the ports and the last reason", "[launch][store]") {
  const launch::TcpStoreServer other{"127.0.0.1", 0, 2, access("other")};
  const std::uint16_t closed = launch::TcpStoreServer{}.port();
  CHECK_THROWS_AS(found({other.port()}, access("own"), std::chrono::milliseconds{200}), pdp::Timeout);
  CHECK_THROWS_WITH(found({closed, other.port()}, access("own"), std::chrono::milliseconds{200}),
                    Contains(pdp::text(closed, ", ", other.port())) && Contains("belongs to another job than rank 1"));
}

TEST_CASE("A store that cannot have its port says so by a type of its own", "[launch][store]") {
  const Silent silent;
  CHECK_THROWS_AS(launch::TcpStoreServer("127.0.0.1", silent.port()), launch::PortTaken);
}

TEST_CASE("Ports derived for a job are the same each time, and others for another job", "[launch][store]") {
  CHECK(launch::ports_of_job("torchrun a 1") == launch::ports_of_job("torchrun a 1"));
  CHECK(launch::ports_of_job("torchrun a 1") != launch::ports_of_job("torchrun a 2"));
}
