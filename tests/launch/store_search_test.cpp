#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pdp/launch/store/store_search.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"

namespace launch = pdp::launch;

namespace {

/// Listens, but never answers a connection.
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
  return launch::StoreSearch{"127.0.0.1", ports, 1, 2, access}.port(pdp::comm::Clock::now() + within);
}
constexpr std::chrono::seconds patience{60};

/// The store of the job "own", started after a pause.
class LateStore {
 public:
  LateStore(std::uint16_t port, std::chrono::milliseconds pause)
      : starter_{[this, port, pause] {
          std::this_thread::sleep_for(pause);
          server_.emplace("127.0.0.1", port, 2, access("own"));
        }} {}

 private:
  std::optional<launch::TcpStoreServer> server_;
  std::jthread starter_;  // destroyed before the server
};

}  // namespace

TEST_CASE("StoreSearch finds its store among ports of strangers, other jobs and earlier attempts", "[launch][store]") {
  const Silent silent;
  const launch::TcpStoreServer other{"127.0.0.1", 0, 2, access("other")}, earlier{"127.0.0.1", 0, 2, access("own", "/0")};
  launch::TcpStoreServer own{"127.0.0.1", 0, 2, access("own", "/1")};
  const std::uint16_t closed = launch::TcpStoreServer{}.port();
  const std::vector<std::uint16_t> ports{silent.port(), other.port(), closed, earlier.port(), own.port()};
  REQUIRE(found(ports, access("own", "/1"), patience) == own.port());
  REQUIRE(found(ports, access("own", "/0"), patience) == earlier.port());
  REQUIRE(found(ports, access("other"), patience) == other.port());
  // The search itself has not joined as rank 1, so rank 1 can still join.
  launch::TcpStore store{"127.0.0.1", own.port(), pdp::comm::Clock::now() + patience, 1, 2, access("own", "/1")};
  store.set("key", "value");
  CHECK(store.get("key") == "value");
}

TEST_CASE("StoreSearch waits for a store that starts later", "[launch][store]") {
  const Silent silent;
  const std::uint16_t port = launch::TcpStoreServer{}.port();
  const LateStore own{port, std::chrono::milliseconds{300}};
  CHECK(found({silent.port(), port}, access("own"), patience) == port);
}

TEST_CASE("StoreSearch finds a store that starts after hundreds of rounds", "[launch][store]") {
  const std::uint16_t port = launch::TcpStoreServer{}.port();
  const LateStore own{port, std::chrono::milliseconds{500}};  // hundreds of rounds later
  const launch::Access mine = access("own");
  launch::Pace fast = launch::StoreSearch::usual_pace;
  fast.first_pause = fast.longest_pause = std::chrono::milliseconds{1};
  CHECK(launch::StoreSearch{"127.0.0.1", std::vector{port}, 1, 2, mine, fast}.port(pdp::comm::Clock::now() + patience) == port);
}

TEST_CASE("StoreSearch finds a store that starts while another port does not answer", "[launch][store]") {
  const Silent silent;
  const std::uint16_t port = launch::TcpStoreServer{}.port();
  const LateStore own{port, std::chrono::milliseconds{300}};
  const launch::Access mine = access("own");
  launch::Pace patient = launch::StoreSearch::usual_pace;
  patient.first_patience = std::chrono::hours{1};
  CHECK(launch::StoreSearch{"127.0.0.1", std::vector{silent.port(), port}, 1, 2, mine, patient}.port(pdp::comm::Clock::now() + patience) ==
        port);
}

TEST_CASE("Pace doubles pause and patience up to their bounds", "[launch][store]") {
  const launch::Pace pace;
  pdp::comm::Duration pause = pace.first_pause, wait = pace.first_patience;
  for (int times = 0; times < 200; ++times) pause = pace.longer_pause(pause), wait = pace.longer_patience(wait);
  CHECK(pause == pace.longest_pause);
  CHECK(wait == pace.longest_patience);
  CHECK(pace.longer_patience(std::chrono::seconds{5}) == std::chrono::seconds{10});
}

TEST_CASE("StoreSearch throws ConfigError with the limit if it has no descriptor for a connection", "[launch][store]") {
  const launch::Access mine = access("own");
  launch::StoreSearch search{"127.0.0.1", std::vector<std::uint16_t>{1, 2}, 1, 2, mine};
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::exception_ptr thrown;  // examined after the limit is lifted, as a sanitizer needs descriptors for that
  try {
    search.port(pdp::comm::Clock::now() + patience);
  } catch (...) {
    thrown = std::current_exception();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(thrown != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), pdp::ConfigError);
  CHECK_THROWS_WITH(std::rethrow_exception(thrown),
                    StartsWith("cannot connect to the job's store at 127.0.0.1, port 1: ") && Contains("Too many open files"));
}

TEST_CASE("StoreSearch throws Timeout with the ports and the last reason if no port has the store", "[launch][store]") {
  const launch::TcpStoreServer other{"127.0.0.1", 0, 2, access("other")};
  const std::uint16_t closed = launch::TcpStoreServer{}.port();
  CHECK_THROWS_AS(found({other.port()}, access("own"), std::chrono::milliseconds{200}), pdp::Timeout);
  CHECK_THROWS_WITH(found({closed, other.port()}, access("own"), std::chrono::milliseconds{200}),
                    Contains(pdp::text(closed, ", ", other.port())) && Contains("belongs to another job than rank 1"));
}

TEST_CASE("TcpStoreServer throws PortTaken if its port is in use", "[launch][store]") {
  const Silent silent;
  CHECK_THROWS_AS(launch::TcpStoreServer("127.0.0.1", silent.port()), launch::PortTaken);
}

TEST_CASE("ports_of_job returns the same ports for the same job, and others for another job", "[launch][store]") {
  CHECK(launch::ports_of_job("torchrun a 1") == launch::ports_of_job("torchrun a 1"));
  CHECK(launch::ports_of_job("torchrun a 1") != launch::ports_of_job("torchrun a 2"));
}
