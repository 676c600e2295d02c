#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <random>

#include <pdp/launch/address.hpp>

#include "catch.hpp"
#include "comm/stream_ranks.hpp"

using namespace stream_test;
namespace tcp = pdp::comm::tcp;

namespace {

/// Somebody who connects to where a rank listens.
pdp::comm::Descriptor call(const std::string& address) {
  std::string why;
  const std::size_t space = address.find(' ');
  const auto found = pdp::launch::resolve(address.substr(0, space), static_cast<std::uint16_t>(std::stoi(address.substr(space + 1))), why);
  pdp::comm::Descriptor socket{::socket(found.at(0).family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(socket.get(), found.at(0).get(), found.at(0).size) != 0) throw std::runtime_error{"connect"};
  return socket;
}
void say(const pdp::comm::Descriptor& socket, const void* bytes, std::size_t size) {
  static_cast<void>(::send(socket.get(), bytes, size, MSG_NOSIGNAL));
}

/// A world of two, of which rank 0 waits when `before` is called with its address, and rank 1 comes after.
template <class F>
void two_ranks(const F& before) {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport transport = TcpTransport::connect(store, 0, 2, patience());
        require(receive(transport, 1, 1000) == pattern(1000, 1), "other bytes arrived");
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    before(store.wait("tcp/address/0", patience()), store);
    TcpTransport one = TcpTransport::connect(store, 1, 2, patience());
    send(one, 0, pattern(1000, 1));
  }
  if (thrown) std::rethrow_exception(thrown);
}

tcp::Hello hello(pdp::launch::InProcessStore& store, int rank, int size) {
  tcp::Hello said{.rank = rank, .size = size};
  std::memcpy(said.token.data(), store.wait("tcp/token", patience()).data(), said.token.size());
  return said;
}

/// Whether the other side hangs up without an answer.
bool hangs_up(const pdp::comm::Descriptor& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;
}

}  // namespace

TEST_CASE("tcp: the job takes no notice of strangers who connect", "[comm][tcp][handshake]") {
  std::vector<pdp::comm::Descriptor> strangers;
  const int kind = GENERATE(0, 1, 2, 3);
  two_ranks([&](const std::string& address, auto&) {
    for (int i = 0; i < (kind == 0 ? 200 : 1); ++i) strangers.push_back(call(address));  // and say nothing
    std::mt19937 random{7};
    std::string bytes(100'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n0123456789012345";
    if (kind == 1) say(strangers[0], http.data(), http.size());
    if (kind == 2) say(strangers[0], bytes.data(), bytes.size());
    if (kind == 3) strangers.clear();  // hangs up at once
    if (kind == 1) CHECK(hangs_up(strangers[0]));
  });
}

TEST_CASE("tcp: a rank of another job is refused", "[comm][tcp][handshake]") {
  two_ranks([](const std::string& address, auto& store) {
    tcp::Hello said = hello(store, 1, 2);
    SECTION("by its token") { said.token[3] ^= 1; }
    SECTION("by its world") { said.size = 3; }
    SECTION("by its rank, which is none") { said.rank = 2; }
    SECTION("by its rank, which is negative") { said.rank = -1; }
    SECTION("by its rank, which is that of the one who is asked") { said.rank = 0; }
    const pdp::comm::Descriptor socket = call(address);
    say(socket, &said, sizeof said);
    CHECK(hangs_up(socket));
  });
}

TEST_CASE("tcp: only the first of two processes with one rank is let in", "[comm][tcp][handshake]") {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport::connect(store, 0, 3, patience());
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    const std::string address = store.wait("tcp/address/0", patience());
    const tcp::Hello first = hello(store, 1, 3), second = hello(store, 2, 3);
    const pdp::comm::Descriptor one = call(address);
    say(one, &first, sizeof first);
    tcp::Hello answer{.rank = -1};
    REQUIRE(::recv(one.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    CHECK(answer.rank == 0);
    const pdp::comm::Descriptor again = call(address);
    say(again, &first, sizeof first);
    CHECK(hangs_up(again));
    const pdp::comm::Descriptor two = call(address);
    say(two, &second, sizeof second);
    CHECK(::recv(two.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
  }
  CHECK_FALSE(thrown);
}

TEST_CASE("tcp: builds that cannot talk to each other say so on both sides", "[comm][tcp][handshake]") {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport::connect(store, 0, 2, patience());
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    const pdp::comm::Descriptor one = call(store.wait("tcp/address/0", patience()));
    tcp::Hello said = hello(store, 1, 2), answer{};
    said.version = 99;
    say(one, &said, sizeof said);
    CHECK(::recv(one.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    CHECK(answer.version == tcp::Hello::this_version);
  }
  CHECK(is<pdp::ConfigError>(thrown));
  CHECK_THAT(words(thrown), Contains("version 1") && Contains("version 99"));
}

TEST_CASE("tcp: ranks that do not come are named", "[comm][tcp][handshake]") {
  const int missing = GENERATE(0, 1, 3);
  pdp::launch::InProcessStore store;
  std::vector<std::exception_ptr> thrown(4);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank)
      if (rank != missing)
        threads.emplace_back([&, rank] {
          try {
            TcpTransport::connect(store, rank, 4, Clock::now() + std::chrono::milliseconds{500});
          } catch (...) {
            thrown[static_cast<std::size_t>(rank)] = std::current_exception();
          }
        });
  }
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == missing) continue;
    const auto& each = thrown[static_cast<std::size_t>(rank)];
    CHECK(each);
    CHECK((is<pdp::Timeout>(each) || is<pdp::PeerLost>(each)));
    if (is<pdp::Timeout>(each)) CHECK_THAT(words(each), Contains(pdp::text("rank ", missing)));
  }
}

TEST_CASE("tcp: a rank that ends during the start is missed at once, not at the deadline", "[comm][tcp][handshake]") {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport::connect(store, 0, 3, Clock::now() + std::chrono::hours{1});
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    const pdp::comm::Descriptor two = call(store.wait("tcp/address/0", patience()));
    tcp::Hello said = hello(store, 2, 3), answer{};
    say(two, &said, sizeof said);
    CHECK(::recv(two.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
  }
  CHECK(lost_rank(thrown) == 2);
}

TEST_CASE("tcp: ranks listen where the store is reached, IPv6 included, and nowhere else", "[comm][tcp][handshake]") {
  struct Store : pdp::launch::InProcessStore {
    std::string address;
    [[nodiscard]] std::string local_address() const { return address; }
  };
  Store store;
  store.address = GENERATE(as<std::string>{}, "127.0.0.1", "127.0.0.2", "::1");
  std::string why;
  const auto found = pdp::launch::resolve(store.address, 0, why);
  const pdp::comm::Descriptor trial{::socket(found.at(0).family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!trial || ::bind(trial.get(), found.at(0).get(), found.at(0).size) != 0) {
    WARN("this machine has no address " << store.address);
    return;
  }
  std::optional<TcpTransport> zero;
  {
    const std::jthread first{[&] { zero = TcpTransport::connect(store, 0, 2, patience()); }};
    const TcpTransport one = TcpTransport::connect(store, 1, 2, patience());
  }
  REQUIRE(zero);
  CHECK_THAT(store.wait("tcp/address/0", patience()), StartsWith(store.address + " "));
}
