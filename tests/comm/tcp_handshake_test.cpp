#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/server.hpp>
#include <pdp/launch/net/address.hpp>

#include "catch.hpp"
#include "comm/stream_ranks.hpp"

namespace tcp_handshake_test {

using namespace stream_test;
using namespace pdp::comm::handshake;
using pdp::comm::Membership;
using pdp::comm::handshake::Self;

namespace {

/// Connects to the address at which a rank listens.
pdp::comm::Descriptor call(const std::string& address) {
  std::string why;
  const std::size_t space = address.find(' ');
  const auto found = pdp::launch::resolve(address.substr(0, space), static_cast<std::uint16_t>(std::stoi(address.substr(space + 1))), why);
  pdp::comm::Descriptor socket{::socket(found.at(0).family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(socket.get(), found.at(0).get(), found.at(0).size) != 0) throw std::runtime_error{"connect"};
  return socket;
}
/// A listening socket at a free port of 127.0.0.1.
struct Listener {
  Listener() : socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    std::string why;
    const auto own = pdp::launch::resolve("127.0.0.1", 0, why).at(0);
    if (::bind(socket.get(), own.get(), own.size) != 0 || ::listen(socket.get(), 16) != 0) throw std::runtime_error{"listen"};
  }
  [[nodiscard]] std::string address() const { return pdp::text("127.0.0.1 ", pdp::launch::Address::of(socket.get()).port()); }

  pdp::comm::Descriptor socket;
};
void say(const pdp::comm::Descriptor& socket, const void* bytes, std::size_t size) {
  static_cast<void>(::send(socket.get(), bytes, size, MSG_NOSIGNAL));
}

/// Runs a world of two. Calls `before` with the address of rank 0, which waits for rank 1. Then rank 1 connects and sends a message.
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

/// Runs rank 0 of three. Calls `play` with its address; `play` acts for the other ranks. Afterwards gives rank 0 invalid addresses of
/// these, and checks that it throws ConfigError.
template <class F>
void rank_zero_of_three(const F& play) {
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
    play(store.wait("tcp/address/0", patience()), store);
    store.set("tcp/address/1", "nowhere");
    store.set("tcp/address/2", "nowhere");
  }
  CHECK(is<pdp::ConfigError>(thrown));
}

Self self(int rank, int size) { return Self::of(Purpose::data, rank, size, {}); }

Key key_of(pdp::launch::InProcessStore& store) { return {Membership{}, Purpose::data, store.wait("tcp/token", patience())}; }

/// A client that connects to a rank and follows the handshake's protocol.
struct Caller {
  Caller(const std::string& address, const Self& own, int whom, Purpose asked = Purpose::data)
      : socket{call(address)}, client{own, whom, asked} {
    hear();
  }

  /// Reads until the client has to send. Returns false if the server closes the connection.
  bool hear() {
    while (!client.space().empty()) {
      const ssize_t read = ::recv(socket.get(), client.space().data(), client.space().size(), 0);
      if (read <= 0) return false;
      client.took(static_cast<std::size_t>(read));
    }
    return true;
  }
  /// Sends the introduction and returns the server's verdict.
  Verdict introduce(const Key& key) {
    if (client.stage() != Client::Stage::invited) return client.verdict();
    last = client.introduce(key);
    say(socket, &last, sizeof last);
    hear();
    return client.verdict();
  }

  pdp::comm::Descriptor socket;
  Client client;
  Introduction last{};
};

/// Returns whether the server closes the connection after at most its greeting.
bool hangs_up(const pdp::comm::Descriptor& socket) {
  char byte = 0;
  ssize_t read = 0;
  std::size_t bytes = 0;
  while ((read = ::recv(socket.get(), &byte, 1, 0)) > 0) ++bytes;
  return bytes <= sizeof(Greeting);
}

}  // namespace

TEST_CASE("TcpTransport ignores strangers that connect during the start", "[comm][tcp][handshake]") {
  std::vector<pdp::comm::Descriptor> strangers;
  const int kind = GENERATE(0, 1, 2, 3);
  two_ranks([&](const std::string& address, auto&) {
    for (int i = 0; i < (kind == 0 ? 200 : 1); ++i) strangers.push_back(call(address));  // and send nothing
    std::mt19937 random{7};
    std::string bytes(100'000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n0123456789012345";
    if (kind == 1) say(strangers[0], http.data(), http.size());
    if (kind == 2) say(strangers[0], bytes.data(), bytes.size());
    if (kind == 3) strangers.clear();  // closes the connections at once
    if (kind == 1) CHECK(hangs_up(strangers[0]));
  });
}

TEST_CASE("TcpTransport takes less than 16 MiB for 10,000 connections of strangers", "[comm][tcp][handshake]") {
  const auto resident = [] {
    std::ifstream file{"/proc/self/statm"};
    std::size_t all = 0, pages = 0;
    file >> all >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  std::size_t before = 0, after = 0;
  two_ranks([&](const std::string& address, auto&) {
    std::mt19937 random{5};
    std::vector<pdp::comm::Descriptor> strangers;
    const std::array<std::string, 5> words{"", "GET / HTTP/1.1\r\n\r\n", std::string{"\x16\x03\x01\x02\x00\x01\x00", 7},
                                           std::string(Introduction::pdp.begin(), Introduction::pdp.end()), std::string(3000, '\x7f')};
    for (int i = 0; i < 10'000; ++i) {
      if (i == 300) before = resident();
      strangers.push_back(call(address));
      const std::string& said = words[random() % words.size()];
      say(strangers.back(), said.data(), said.size());
      if (strangers.size() == 200) strangers.clear();
    }
    after = resident();
  });
  constexpr std::size_t more = PDP_TEST_SANITIZED ? 1 << 30 : 16 << 20;  // sanitizers keep freed memory for a while
  CHECK(after < before + more);
}

TEST_CASE("TcpTransport limits how many connections of strangers it keeps open", "[comm][tcp][handshake]") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  };
  two_ranks([&](const std::string& address, auto&) {
    const std::size_t before = open_files();
    std::vector<pdp::comm::Descriptor> strangers;
    for (int i = 0; i < 200; ++i) strangers.push_back(call(address));
    Greeting greeting;  // a stranger that receives it was accepted, though perhaps only briefly
    for (const auto& each : strangers)
      CHECK(::recv(each.get(), &greeting, sizeof greeting, MSG_WAITALL) == static_cast<ssize_t>(sizeof greeting));
    CHECK(open_files() < before + strangers.size() + 64 + 2 + 10);
  });
}

TEST_CASE("TcpTransport refuses a rank that does not belong to its world", "[comm][tcp][handshake]") {
  two_ranks([](const std::string& address, auto& store) {
    Self own = self(1, 2);
    Key key = key_of(store);
    Verdict expected = Verdict::no_such_rank;
    SECTION("with another token") {
      key = Key{Membership{}, Purpose::data, std::string(32, 't')};
      expected = Verdict::unknown;
    }
    SECTION("with another secret") {
      key = Key{Membership{.secret = pdp::comm::Secret{"secret"}}, Purpose::data, store.wait("tcp/token", patience())};
      expected = Verdict::unknown;
    }
    SECTION("with a key of another purpose") {
      key = Key{Membership{}, Purpose::store, store.wait("tcp/token", patience())};
      expected = Verdict::unknown;
    }
    SECTION("of another attempt") {
      own = Self::of(Purpose::data, 1, 2, {"", "1"});
      expected = Verdict::other_attempt;
    }
    SECTION("of a world of another size") {
      own.size = 3;
      expected = Verdict::other_size;
    }
    SECTION("with a rank beyond the world") { own.rank = 2; }
    SECTION("with a negative rank") { own.rank = -1; }
    SECTION("with the rank of the server") { own.rank = 0; }
    Caller caller{address, own, 0};
    CHECK(caller.introduce(key) == expected);
    if (expected != Verdict::other_attempt) CHECK(hangs_up(caller.socket));
  });
}

TEST_CASE("TcpTransport refuses a replayed introduction", "[comm][tcp][handshake]") {
  rank_zero_of_three([](const std::string& address, auto& store) {
    Caller one{address, self(1, 3), 0};
    REQUIRE(one.introduce(key_of(store)) == Verdict::welcome);
    Caller replay{address, self(2, 3), 0};
    say(replay.socket, &one.last, sizeof one.last);
    Answer answer;
    CHECK(::recv(replay.socket.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    CHECK(answer.verdict == Verdict::unknown);
    Caller two{address, self(2, 3), 0};
    CHECK(two.introduce(key_of(store)) == Verdict::welcome);
  });
}

TEST_CASE("TcpTransport accepts the first of two processes with the same rank and rejects the second as duplicate",
          "[comm][tcp][handshake]") {
  const Purpose purpose = GENERATE(Purpose::data, Purpose::pulse);
  rank_zero_of_three([&](const std::string& address, auto& store) {
    Caller one{address, self(1, 3), 0, purpose};
    REQUIRE(one.introduce(key_of(store)) == Verdict::welcome);
    Caller again{address, self(1, 3), 0, purpose};
    CHECK(again.introduce(key_of(store)) == Verdict::duplicate);
    CHECK(hangs_up(again.socket));
    Caller two{address, self(2, 3), 0};
    CHECK(two.introduce(key_of(store)) == Verdict::welcome);
  });
}

TEST_CASE("TcpTransport accepts a pulse only from the next rank", "[comm][tcp][handshake]") {
  rank_zero_of_three([](const std::string& address, auto& store) {
    Caller two{address, self(2, 3), 0, Purpose::pulse};
    CHECK(two.introduce(key_of(store)) == Verdict::no_such_rank);
    Caller one{address, self(1, 3), 0, Purpose::pulse};
    CHECK(one.introduce(key_of(store)) == Verdict::welcome);
  });
}

TEST_CASE("TcpTransport reports incompatible builds on both ranks", "[comm][tcp][handshake]") {
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
    Self own = self(1, 2);
    own.build.protocol = 99;
    Caller one{store.wait("tcp/address/0", patience()), own, 0};
    CHECK(one.introduce(key_of(store)) == Verdict::other_build);
    CHECK(one.client.verdict_is_proved());
    CHECK(one.client.greeting().build == Build::here());
    store.set("tcp/address/1", "127.0.0.1 1");
  }
  CHECK(is<pdp::ConfigError>(thrown));
  CHECK_THAT(words(thrown), Contains("rank 0 runs pdp 0.1.0 (protocol 5") && Contains("rank 1 runs pdp 0.1.0 (protocol 99"));
}

TEST_CASE("TcpTransport ignores an incompatible build that does not know the secret", "[comm][tcp][handshake]") {
  two_ranks([](const std::string& address, auto&) {
    Self own = self(1, 2);
    own.build.protocol = 99;
    Caller caller{address, own, 0};
    caller.introduce(Key{Membership{}, Purpose::data, "guessed"});
    CHECK_FALSE(caller.client.verdict_is_proved());
  });
}

TEST_CASE("TcpTransport::connect trusts a verdict only from a server that knows the secret", "[comm][tcp][handshake]") {
  pdp::launch::InProcessStore store;
  store.set("tcp/token", std::string(32, 't'));
  const Listener listener;
  store.set("tcp/addresses", listener.address() + "\n127.0.0.1 1\n");
  const bool knows = GENERATE(false, true);
  const auto verdict = GENERATE(Verdict::welcome, Verdict::duplicate);
  std::exception_ptr thrown;
  {
    const std::jthread one{[&] {
      try {
        TcpTransport::connect(store, 1, 2, Clock::now() + std::chrono::seconds{knows ? 60 : 1});
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    const pdp::comm::Descriptor socket{::accept(listener.socket.get(), nullptr, nullptr)};
    store.wait("tcp/address/1", patience());
    Server server{self(0, 2), knows ? key_of(store) : Key{Membership{}, Purpose::data, "guessed"}, Grounds::secret};
    say(socket, server.greeting().data(), server.greeting().size());
    while (!server.space().empty()) {
      const ssize_t read = ::recv(socket.get(), server.space().data(), server.space().size(), 0);
      REQUIRE(read > 0);
      server.took(static_cast<std::size_t>(read));
    }
    const Answer answer = server.answer(verdict);
    say(socket, &answer, sizeof answer);
  }
  CHECK(is<pdp::Timeout>(thrown) == !knows);
  if (!knows) CHECK_THAT(words(thrown), Contains("rank 0 and rank 1 do not have the same secret"));
  if (knows && verdict == Verdict::duplicate) {
    CHECK(is<pdp::ConfigError>(thrown));
    CHECK_THAT(words(thrown), Contains("rank 1 of this job has joined already"));
  }
}

TEST_CASE("TcpTransport::connect names the missing rank at the deadline", "[comm][tcp][handshake]") {
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

TEST_CASE("TcpTransport::connect reports a rank that ends during the start before the deadline", "[comm][tcp][handshake]") {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  std::optional<int> lost;
  const Listener silent;  // accepts connections but never answers
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport::connect(store, 0, 3, Clock::now() + std::chrono::hours{1});
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    store.set("tcp/address/1", silent.address());
    const std::string zeros = store.wait("tcp/address/0", patience());
    SECTION("because its connection closes") {
      store.set("tcp/address/2", silent.address());
      Caller one{zeros, self(1, 3), 0, Purpose::pulse};
      CHECK(one.introduce(key_of(store)) == Verdict::welcome);
      lost = 1;
    }
    SECTION("because it no longer listens") {
      store.set("tcp/address/2", Listener{}.address());
      lost = 2;
    }
  }
  CHECK(lost_rank(thrown) == lost);
}

TEST_CASE("TcpTransport listens at the local address that the store reports, IPv4 or IPv6", "[comm][tcp][handshake]") {
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

}  // namespace tcp_handshake_test
