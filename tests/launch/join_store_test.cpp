#include <sys/socket.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pdp/comm/tcp/transport.hpp>
#include <pdp/launch/join.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace join_store_test {

// Tests of which ranks a job's store admits.

namespace launch = pdp::launch;
namespace handshake = pdp::comm::handshake;
using launch::Access;
using launch::TcpStore;
using launch::TcpStoreServer;
using pdp::comm::Clock;
using pdp::comm::Descriptor;
using pdp::comm::Secret;
using support::message_of;

namespace {

pdp::comm::TimePoint patience() { return Clock::now() + std::chrono::seconds{60}; }
pdp::comm::TimePoint soon() { return Clock::now() + std::chrono::milliseconds{300}; }

Access with_secret(const std::string& secret = "sixteen bytes or more") {
  Access access;
  access.secret = Secret{secret};
  return access;
}

constexpr const char* host = "127.0.0.1";

/// Tries to join for 300 ms. Returns the message of the error E, or an empty string if the rank joins.
template <class E = pdp::ConfigError>
std::string refusal(const TcpStoreServer& server, const Access& access, int rank = 1, int size = 3) {
  return message_of<E>([&] { TcpStore{host, server.port(), soon(), rank, size, access}; }).value_or("");
}

Descriptor call(std::uint16_t port) {
  std::string why;
  const auto address = launch::resolve(host, port, why).at(0);
  Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(socket.get(), address.get(), address.size) != 0) throw std::runtime_error{"connect"};
  return socket;
}
void say(const Descriptor& socket, std::string_view bytes) {
  static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}
bool hear(const Descriptor& socket, handshake::Client& client) {
  while (!client.space().empty()) {
    const ssize_t read = ::recv(socket.get(), client.space().data(), client.space().size(), 0);
    if (read <= 0) return false;
    client.took(static_cast<std::size_t>(read));
  }
  return true;
}

std::size_t resident() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("Ranks join a store with this host's secret, with a given secret, or with none if insecure", "[launch][join]") {
  Access access = GENERATE(Access{}, with_secret(), Access{.insecure = true});
  TcpStoreServer server{host, 0, 3, access};
  TcpStore one{host, server.port(), patience(), 0, 3, access}, two{host, server.port(), patience(), 2, 3, access};
  one.set("key", "value");
  CHECK(two.wait("key", patience()) == "value");
  CHECK(one.membership().secret.bytes() == two.membership().secret.bytes());
  CHECK(one.membership().secret.bytes().empty() == access.insecure);
}

TEST_CASE("Two stores on one host draw different secrets", "[launch][join]") {
  const TcpStoreServer server{host, 0, 1}, other{host, 0, 1};
  const TcpStore one{host, server.port(), patience()}, two{host, other.port(), patience()};
  CHECK(one.membership().secret.bytes() != two.membership().secret.bytes());
}

TEST_CASE("A rank with another secret than the store, or without one, fails at once and shows no secret", "[launch][join]") {
  const TcpStoreServer server{host, 0, 3, with_secret()};
  const std::string wrong = refusal(server, with_secret("another secret of the same kind"));
  CHECK_THAT(wrong, Contains("do not have the same secret") && Contains("PDP_SECRET_FILE") && Contains(std::to_string(server.port())));
  CHECK_THAT(wrong, !Contains("sixteen bytes") && !Contains("another secret of"));
  CHECK_THAT(refusal(server, Access{}), Contains("requires a secret, but this rank has none"));
  CHECK_THAT(refusal(server, Access{.insecure = true}), Contains("requires a secret, but this rank has none"));
  const TcpStoreServer without{host, 0, 3};
  CHECK_THAT(refusal(without, with_secret()), Contains("this rank has a secret") && !Contains("sixteen bytes"));
  const TcpStoreServer open{host, 0, 3, Access{.insecure = true}};
  CHECK_THAT(refusal(open, with_secret()), Contains("this rank has a secret"));
  CHECK_THAT(refusal(open, Access{}), Contains("lets everyone join") && Contains("PDP_INSECURE=1"));
}

TEST_CASE("A rank of another job or attempt retries until its deadline and reports the difference", "[launch][join]") {
  Access access = with_secret();
  access.job = {"42.0", "1"};
  const TcpStoreServer server{host, 0, 3, access};
  Access other = access;
  other.job.attempt = "0";
  CHECK_THAT(refusal<pdp::Timeout>(server, other), Contains("another attempt of this job than rank 1"));
  other.job = {"43.0", "1"};
  CHECK_THAT(refusal<pdp::Timeout>(server, other), Contains("another job than rank 1"));
  CHECK(refusal(server, access).empty());
}

TEST_CASE("A store rejects a rank that claims the current attempt with the key of an earlier one", "[launch][join]") {
  Access access = with_secret();
  access.job = {"42.0", "1"};
  const TcpStoreServer server{host, 0, 3, access};
  const Descriptor socket = call(server.port());
  handshake::Client client{handshake::Self::of(handshake::Purpose::store, 1, 3, access.job), handshake::no_rank};
  REQUIRE(hear(socket, client));
  REQUIRE(client.stage() == handshake::Client::Stage::invited);
  const handshake::Key stale{{.secret = *access.secret, .job = {"42.0", "0"}}, handshake::Purpose::store};
  const auto words = client.introduce(stale);
  say(socket, handshake::bytes_of(words));
  hear(socket, client);
  CHECK(client.verdict() == handshake::Verdict::unknown);
}

TEST_CASE("A rank fails at once if its world has another size or its number is out of range", "[launch][join]") {
  const TcpStoreServer server{host, 0, 3};
  CHECK_THAT(refusal(server, {}, 1, 4), Contains("rank 1 was started in a world of 4 ranks") && Contains("one of 3"));
  CHECK_THAT(refusal(server, {}, 3, 3), Contains("expects no rank 3"));
  CHECK_THAT(refusal(server, {}, -1, 3), Contains("expects no rank -1"));
}

TEST_CASE("A store rejects a second process of a rank as long as the first is connected", "[launch][join]") {
  const TcpStoreServer server{host, 0, 3};
  auto first = std::make_unique<TcpStore>(host, server.port(), patience(), 1, 3);
  CHECK_THAT(refusal(server, {}), Contains("rank 1 of this job has joined already") && Contains("two processes"));
  CHECK(refusal(server, {}, 2).empty());
  first->set("key", "value");
  first.reset();
  std::string why = "never tried";
  for (const auto until = patience(); !why.empty() && Clock::now() < until;) why = refusal(server, {});
  CHECK(why.empty());
}

TEST_CASE("A store rejects the replay of a recorded handshake", "[launch][join]") {
  const Access access = with_secret();
  const TcpStoreServer server{host, 0, 3, access};
  const handshake::Key key{{.secret = *access.secret}, handshake::Purpose::store};
  std::string recorded;
  {
    const Descriptor socket = call(server.port());
    handshake::Client client{handshake::Self::of(handshake::Purpose::store, 1, 3, {}), handshake::no_rank};
    REQUIRE(hear(socket, client));
    recorded = handshake::bytes_of(client.introduce(key));
    say(socket, recorded);
    REQUIRE(hear(socket, client));
    REQUIRE(client.stage() == handshake::Client::Stage::welcome);
  }
  const Descriptor socket = call(server.port());
  say(socket, recorded);
  std::string heard(sizeof(handshake::Greeting) + sizeof(handshake::Answer), '\0');
  REQUIRE(::recv(socket.get(), heard.data(), heard.size(), MSG_WAITALL) == static_cast<ssize_t>(heard.size()));
  handshake::Answer answer;
  std::memcpy(&answer, heard.data() + sizeof(handshake::Greeting), sizeof answer);
  CHECK(answer.verdict == handshake::Verdict::unknown);
  char byte = 0;
  CHECK(::recv(socket.get(), &byte, 1, 0) <= 0);
}

TEST_CASE("A rank of another build is rejected with a message that names both builds", "[launch][join]") {
  const TcpStoreServer server{host, 0, 3, with_secret()};
  const Descriptor socket = call(server.port());
  handshake::Self self = handshake::Self::of(handshake::Purpose::store, 1, 3, {});
  self.build.version = {'0', '.', '9'};
  handshake::Client client{self, handshake::no_rank};
  REQUIRE(hear(socket, client));
  const auto words = client.introduce(handshake::Key{{.secret = Secret{"sixteen bytes or more"}}, handshake::Purpose::store});
  say(socket, handshake::bytes_of(words));
  REQUIRE(hear(socket, client));
  CHECK(client.verdict() == handshake::Verdict::other_build);
  CHECK_THAT(handshake::explain(client, "the store"), Contains("rank 1 runs pdp 0.9") && Contains("the store runs pdp 0.1.0"));
}

TEST_CASE("A rank rejects a store that does not know the secret", "[launch][join]") {
  // An impostor at the job's port, whose greeting looks right.
  std::string why;
  const auto address = launch::resolve(host, 0, why).at(0);
  const Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::bind(listener.get(), address.get(), address.size) == 0);
  REQUIRE(::listen(listener.get(), 4) == 0);
  const std::uint16_t port = launch::Address::of(listener.get()).port();
  std::optional<std::string> said;
  {
    const std::jthread rank{[&] { said = message_of<pdp::ConfigError>([&] { TcpStore{host, port, patience(), 1, 3, with_secret()}; }); }};
    const Descriptor socket{::accept(listener.get(), nullptr, nullptr)};
    handshake::Server impostor{handshake::Self::of(handshake::Purpose::store, handshake::no_rank, 3, {}),
                               handshake::Key{{.secret = Secret{"guessed"}}, handshake::Purpose::store}, handshake::Grounds::secret};
    say(socket, impostor.greeting());
    while (!impostor.space().empty()) {
      const ssize_t read = ::recv(socket.get(), impostor.space().data(), impostor.space().size(), 0);
      if (read <= 0) break;
      impostor.took(static_cast<std::size_t>(read));
    }
    const auto welcome = impostor.answer(handshake::Verdict::welcome);
    say(socket, handshake::bytes_of(welcome));
  }
  REQUIRE(said);
  CHECK_THAT(*said, Contains("do not have the same secret"));
}

TEST_CASE("A rank without a secret for a remote store lists the ways to authenticate before it connects", "[launch][join]") {
  const auto words = message_of<pdp::UsageError>([&] { TcpStore{"192.0.2.1", 1, patience(), 1, 3}; });
  REQUIRE(words);
  CHECK_THAT(*words, Contains("192.0.2.1") && Contains("PDP_SECRET_FILE") && Contains("munge") && Contains("PDP_INSECURE=1"));
}

TEST_CASE("Rank 0 hosts the store until no other rank needs it", "[launch][join]") {
  // A communicator whose rank 1 is slow: it reads from the store 300 ms after rank 0 is connected.
  struct Slow {
    std::string found{};
    static Slow connect(pdp::comm::StoreView store, int rank, int, pdp::comm::TimePoint deadline) {
      store.set(pdp::text("there/", rank), "yes");
      static_cast<void>(store.wait(pdp::text("there/", 1 - rank), deadline));
      if (rank == 0) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds{300});
      return {store.get("there/0").value_or("nothing")};
    }
  };
  launch::JobPlace place{.rank = 0, .size = 2, .master_address = host, .master_port = TcpStoreServer{}.port(), .hosts_store = true};
  std::optional<std::string> error;
  Slow one;
  {
    const std::jthread rank_1{[&, other = place]() mutable {
      other.rank = 1;
      other.hosts_store = false;
      error = message_of<pdp::Error>([&] { one = launch::join<Slow>(other); });
    }};
    static_cast<void>(launch::join<Slow>(place));
  }
  CHECK(error.value_or("none") == "none");
  CHECK(one.found == "yes");
}

TEST_CASE("A store ignores requests on a connection that has not authenticated", "[launch][join]") {
  TcpStoreServer server{host, 0, 3};
  const Descriptor socket = call(server.port());
  say(socket, launch::encode({.kind = launch::StoreMessage::Kind::set}, "key", "poison") + std::string(4096, '\0'));
  std::size_t heard = 0;
  for (char byte = 0; ::recv(socket.get(), &byte, 1, 0) > 0;) ++heard;
  CHECK(heard <= sizeof(handshake::Greeting) + sizeof(handshake::Credential));
  CHECK_FALSE(TcpStore(host, server.port(), patience(), 0, 3).get("key"));
}

TEST_CASE("A store closes a silent connection after five seconds", "[launch][join][.long]") {
  const TcpStoreServer server{host, 0, 3};
  const Descriptor silent = call(server.port());
  const auto begin = std::chrono::steady_clock::now();
  for (char byte = 0; ::recv(silent.get(), &byte, 1, 0) > 0;) continue;
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited > std::chrono::seconds{4});
  CHECK(waited < std::chrono::seconds{20});
}

TEST_CASE("A store bounds the number of connections that have not authenticated", "[launch][join]") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  };
  const TcpStoreServer server{host, 0, 3, with_secret()};
  const std::size_t before = open_files();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(call(server.port()));
  handshake::Greeting greeting;  // a connection that receives it was accepted, though perhaps not for long
  for (const Descriptor& each : strangers)
    CHECK(::recv(each.get(), &greeting, sizeof greeting, MSG_WAITALL) == static_cast<ssize_t>(sizeof greeting));
  CHECK(open_files() < before + strangers.size() + 128 + 3 + 10);
}

TEST_CASE("A store serves its ranks in bounded memory during 10,000 connections of strangers", "[launch][join]") {
  TcpStoreServer server{host, 0, 3};
  TcpStore one{host, server.port(), patience(), 0, 3};
  std::mt19937 random{11};
  const std::array<std::string, 5> words{"", "GET / HTTP/1.1\r\n\r\n", std::string{"\x16\x03\x01\x02\x00\x01\x00", 7},
                                         std::string(handshake::Introduction::pdp.begin(), handshake::Introduction::pdp.end()),
                                         std::string(3000, '\x7f')};
  std::vector<Descriptor> strangers;
  std::size_t before = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (i == 300) before = resident();
    strangers.push_back(call(server.port()));
    say(strangers.back(), words[random() % words.size()]);
    if (strangers.size() == 200) {
      const std::string key = std::to_string(i);
      one.set(key, "value");
      CHECK(TcpStore(host, server.port(), patience(), 1 + i / 200 % 2, 3).get(key) == "value");
      strangers.clear();
    }
  }
  constexpr std::size_t more = PDP_TEST_SANITIZED ? 1 << 30 : 16 << 20;  // a sanitizer keeps freed memory
  CHECK(resident() < before + more);
}

TEST_CASE("TcpTransport connects only ranks that know the secret, and never writes it to the store", "[launch][join]") {
  // Records all that a rank writes to the store and reads from it.
  struct Recorder {
    TcpStore& store;
    std::string* seen;
    void set(std::string_view key, std::string_view value) {
      seen->append(key).append(value);
      store.set(key, value);
    }
    std::string wait(std::string_view key, pdp::comm::TimePoint deadline) {
      std::string value = store.wait(key, deadline);
      seen->append(value);
      return value;
    }
    std::optional<std::string> get(std::string_view key) { return store.get(key); }
    std::int64_t add(std::string_view key, std::int64_t amount) { return store.add(key, amount); }
    [[nodiscard]] std::string local_address() const { return store.local_address(); }
    [[nodiscard]] const pdp::comm::Membership& membership() const { return *shown; }
    const pdp::comm::Membership* shown = &store.membership();
  };
  const Access access = GENERATE(Access{}, with_secret());
  const bool both_know = GENERATE(true, false);
  TcpStoreServer server{host, 0, 2, access};
  TcpStore zero{host, server.port(), patience(), 0, 2, access}, one{host, server.port(), patience(), 1, 2, access};
  const std::string secret{zero.membership().secret.bytes()};
  REQUIRE(secret.size() >= 16);
  std::array<std::string, 2> seen;
  Recorder first{zero, &seen[0]}, second{one, &seen[1]};
  const pdp::comm::Membership none;
  if (!both_know) second.shown = &none;
  std::optional<std::string> failure;
  const auto deadline = [&] { return both_know ? patience() : Clock::now() + std::chrono::milliseconds{500}; };
  {
    const std::jthread rank{[&] {
      try {
        pdp::comm::TcpTransport::connect(first, 0, 2, deadline());
      } catch (const pdp::CommunicationError&) {
      }
    }};
    // A timeout, or the end of rank 0 if its deadline was the earlier one.
    failure = message_of<pdp::CommunicationError>([&] { pdp::comm::TcpTransport::connect(second, 1, 2, deadline()); });
  }
  CHECK(failure.has_value() == !both_know);
  for (const std::string& each : seen) {
    CHECK_THAT(each, Contains("tcp/address/"));
    CHECK(each.find(secret) == std::string::npos);
  }
}

}  // namespace join_store_test
