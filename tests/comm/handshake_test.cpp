#include <pdp/comm/join/handshake/explain.hpp>
#include <pdp/comm/join/handshake/server.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "catch.hpp"

namespace handshake_test {

using namespace pdp::comm;
using namespace pdp::comm::handshake;
using pdp::comm::handshake::no_rank, pdp::comm::handshake::Self;

namespace {

const Membership job{.secret = Secret{"sixteen bytes or more"}, .job = {.name = "42.0", .attempt = "1"}};

Self server_self(Purpose purpose = Purpose::data) { return Self::of(purpose, purpose == Purpose::store ? no_rank : 0, 3, job.job); }
Self client_self(Purpose purpose = Purpose::data) { return Self::of(purpose, 2, 3, job.job); }

/// Feeds bytes to one end of a connection. Each time it passes as many as the end has space for, but at most `at_once`.
template <class End>
void hear(End& end, std::string_view bytes, std::size_t at_once = 1 << 20) {
  while (!bytes.empty() && !end.space().empty()) {
    const auto space = end.space();
    const std::size_t now = std::min({bytes.size(), space.size(), at_once});
    std::memcpy(space.data(), bytes.data(), now);
    bytes.remove_prefix(now);
    end.took(now);
  }
}

/// The messages of one connection. A test may change them in transit.
struct Conversation {
  Server server;
  Client client;
  std::string greeting{server.greeting()}, introduction{}, answer{};

  /// Connects a server with a client that considers itself a member of the same job.
  explicit Conversation(const Self& asked = server_self(), const Self& asks = client_self(), const Key& servers = Key{job, Purpose::data},
                        Grounds grounds = Grounds::secret)
      : server{asked, servers, grounds, "a credential"}, client{asks, asked.rank} {}

  void greet(std::size_t at_once = 1 << 20) { hear(client, greeting, at_once); }
  void introduce(const Key& key = Key{job, Purpose::data}, std::size_t at_once = 1 << 20) {
    introduction = bytes_of(client.introduce(key));
    hear(server, introduction, at_once);
  }
  void reply(std::size_t at_once = 1 << 20) {
    answer = bytes_of(server.answer(server.verdict()));
    hear(client, answer, at_once);
  }
};

constexpr auto welcome = Client::Stage::welcome;
constexpr auto asked = Server::Stage::asked;

}  // namespace

TEST_CASE("Client and Server accept each other if both know the secret, however their bytes are split", "[comm][handshake]") {
  const auto purpose = GENERATE(Purpose::store, Purpose::data);
  const auto grounds = GENERATE(Grounds::secret, Grounds::munge, Grounds::this_host, Grounds::open);
  const auto at_once = GENERATE(as<std::size_t>{}, 1, 7, 4096);
  const Key key{job, purpose};
  Conversation talk{server_self(purpose), client_self(purpose), key, grounds};
  talk.greet(at_once);
  REQUIRE(talk.client.stage() == Client::Stage::invited);
  CHECK(talk.client.greeting().grounds == grounds);
  CHECK(talk.client.credential() == (has_credential(grounds) ? "a credential" : ""));
  talk.introduce(key, at_once);
  REQUIRE(talk.server.stage() == asked);
  CHECK(talk.server.theirs().from == 2);
  talk.reply(at_once);
  CHECK(talk.client.stage() == welcome);
  CHECK(talk.client.verdict_is_proved());
  CHECK(talk.client.space().empty());
  CHECK(talk.server.space().empty());
}

TEST_CASE("Server refuses a client without the secret and does not sign the verdict", "[comm][handshake]") {
  Membership other = job;
  Purpose purpose = Purpose::data;
  std::string salt;
  SECTION("another secret") { other.secret = Secret{"sixteen bytes or mord"}; }
  SECTION("no secret") { other.secret = {}; }
  SECTION("another job") { other.job.name = "42.1"; }
  SECTION("another attempt") { other.job.attempt = "2"; }
  SECTION("the same text split differently into job and attempt") { other.job = {"42.01", ""}; }
  SECTION("the key of another purpose") { purpose = Purpose::store; }
  SECTION("the key of another world of the job") { salt = "another"; }
  Conversation talk;
  talk.greet();
  talk.introduce(Key{other, purpose, salt});
  CHECK(talk.server.stage() == Server::Stage::refused);
  CHECK(talk.server.verdict() == Verdict::unknown);
  CHECK(talk.server.answer(Verdict::unknown).tag == Tag{});  // a verdict for a stranger is not signed
  talk.reply();
  CHECK(talk.client.stage() == Client::Stage::refused);
  CHECK_FALSE(talk.client.verdict_is_proved());
  CHECK_THAT(explain(talk.client, "rank 0"), Contains("rank 0 and rank 2 do not have the same secret"));
}

TEST_CASE("Client refuses a server without the secret, whatever its verdict", "[comm][handshake]") {
  const auto verdict = static_cast<Verdict>(GENERATE(range(0, 12)));
  Conversation talk{server_self(), client_self(), Key{Membership{}, Purpose::data}};
  talk.greet();
  talk.introduce();
  hear(talk.client, bytes_of(talk.server.answer(verdict)));
  CHECK(talk.client.stage() == Client::Stage::refused);
  CHECK_FALSE(talk.client.verdict_is_proved());
}

TEST_CASE("Server refuses an incompatible member with a signed verdict that explains why", "[comm][handshake]") {
  Self self = client_self();
  Verdict expected = Verdict::no_such_rank;
  std::string words = "expects no rank";
  SECTION("another size of the world") {
    self.size = 4;
    expected = Verdict::other_size;
    words = "rank 2 was started in a world of 4 ranks, but rank 0 is in one of 3";
  }
  SECTION("another version") {
    self.build.version = {'0', '.', '9', '\n'};
    expected = Verdict::other_build;
    words = "pdp 0.9? (protocol 5, addresses of 8 bytes, headers of 64 bytes), but rank 0 runs pdp 0.1.0";
  }
  SECTION("another protocol") {
    self.build.protocol = 99;
    expected = Verdict::other_build;
    words = "protocol 99";
  }
  SECTION("another size of frames") {
    self.build.frame_bytes = 32;
    expected = Verdict::other_build;
    words = "headers of 32 bytes";
  }
  SECTION("other choices of algorithms") {
    self.build.choices ^= 1;
    expected = Verdict::other_build;
    words = "other choices of algorithms";
  }
  SECTION("other element types") {
    self.build.element_types ^= 1;
    expected = Verdict::other_build;
    words = "other element types";
  }
  SECTION("another byte order") {
    self.build.byte_order = 0x04030201;
    expected = Verdict::other_build;
    words = "another byte order";
  }
  SECTION("a rank beyond the world") { self.rank = 3; }
  SECTION("a negative rank") { self.rank = -1; }
  SECTION("the rank of the server itself") { self.rank = 0; }
  Conversation talk{server_self(), self};
  talk.greet();
  talk.introduce();
  CHECK(talk.server.stage() == Server::Stage::refused);
  CHECK(talk.server.verdict() == expected);
  talk.reply();
  CHECK(talk.client.stage() == Client::Stage::refused);
  CHECK(talk.client.verdict() == expected);
  CHECK(talk.client.verdict_is_proved());
  CHECK_THAT(explain(talk.client, "rank 0"), Contains(words));
}

TEST_CASE("Client detects a wrong server by its greeting, before it sends anything", "[comm][handshake]") {
  Self self = server_self();
  Verdict expected = Verdict::stranger;
  SECTION("another job") {
    self = Self::of(Purpose::data, 0, 3, {"43.0", "1"});
    expected = Verdict::other_job;
  }
  SECTION("an earlier attempt") {
    self = Self::of(Purpose::data, 0, 3, {"42.0", "0"});
    expected = Verdict::other_attempt;
  }
  SECTION("another rank") { self.rank = 1; }
  SECTION("the store") { self.purpose = Purpose::store; }
  Server server{self, Key{job, Purpose::data}, Grounds::secret};
  Client client{client_self(), 0};
  hear(client, server.greeting());
  CHECK(client.stage() == Client::Stage::refused);
  CHECK(client.verdict() == expected);
}

TEST_CASE("Server and Client refuse messages recorded from another handshake", "[comm][handshake]") {
  Conversation recorded;
  recorded.greet();
  recorded.introduce();
  recorded.reply();
  REQUIRE(recorded.client.stage() == welcome);
  SECTION("the client's introduction to a server") {
    Conversation later;
    hear(later.server, recorded.introduction);
    CHECK(later.server.verdict() == Verdict::unknown);
  }
  SECTION("the server's answer to a client") {
    Client client{client_self(), 0};
    hear(client, recorded.greeting);
    REQUIRE(client.stage() == Client::Stage::invited);
    static_cast<void>(client.introduce(Key{job, Purpose::data}));
    hear(client, recorded.answer);
    CHECK(client.stage() == Client::Stage::refused);
  }
}

TEST_CASE("Client refuses an answer with its own tag, and keys sign differently for each side", "[comm][handshake]") {
  Conversation talk;
  talk.greet();
  talk.introduce();
  Answer reflected{.verdict = Verdict::welcome};
  reflected.tag = talk.server.theirs().tag;
  hear(talk.client, bytes_of(reflected));
  CHECK(talk.client.stage() == Client::Stage::refused);
  const Key key{job, Purpose::data};
  CHECK(key.sign("client", "the same") != key.sign("server", "the same"));
}

TEST_CASE("Server of a store refuses an introduction that was signed for a connection between ranks", "[comm][handshake]") {
  // Disguises a store's greeting as that of a rank, and passes the client's reply on to the store.
  Server store{server_self(Purpose::store), Key{job, Purpose::store}, Grounds::secret};
  Greeting forged;
  std::memcpy(&forged, store.greeting().data(), sizeof forged);
  forged.purpose = Purpose::data;
  forged.rank = 0;
  Client client{client_self(), 0};
  hear(client, bytes_of(forged));
  REQUIRE(client.stage() == Client::Stage::invited);
  Introduction words = client.introduce(Key{job, Purpose::data});
  words.purpose = Purpose::store;
  words.to = no_rank;
  hear(store, bytes_of(words));
  CHECK(store.verdict() == Verdict::unknown);
}

TEST_CASE("The handshake detects every single flipped bit", "[comm][handshake]") {
  const auto grounds = GENERATE(Grounds::secret, Grounds::munge);
  const Key key{job, Purpose::data};
  Conversation sizes{server_self(), client_self(), key, grounds};
  const std::size_t greeting_bits = 8 * sizes.greeting.size();
  std::size_t undetected = 0;
  const auto flip = [](std::string& bytes, std::size_t bit) { bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8)); };
  for (std::size_t bit = 0; bit < greeting_bits; ++bit) {
    Conversation talk{server_self(), client_self(), key, grounds};
    flip(talk.greeting, bit);
    talk.greet();
    if (talk.client.stage() == Client::Stage::invited) talk.introduce(key);
    undetected += talk.server.stage() == asked || talk.client.stage() == welcome;
  }
  CHECK(undetected == 0);
  for (std::size_t bit = 0; bit < 8 * sizeof(Introduction); ++bit) {
    Conversation talk{server_self(), client_self(), key, grounds};
    talk.greet();
    std::string words{bytes_of(talk.client.introduce(key))};
    flip(words, bit);
    hear(talk.server, words);
    undetected += talk.server.stage() == asked || (talk.server.verdict() != Verdict::unknown && talk.server.verdict() != Verdict::stranger);
  }
  CHECK(undetected == 0);
  for (std::size_t bit = 0; bit < 8 * sizeof(Answer); ++bit) {
    Conversation talk{server_self(), client_self(), key, grounds};
    talk.greet();
    talk.introduce(key);
    std::string words{bytes_of(talk.server.answer(Verdict::welcome))};
    flip(words, bit);
    hear(talk.client, words);
    undetected += talk.client.stage() == welcome || talk.client.verdict_is_proved();
  }
  CHECK(undetected == 0);
}

TEST_CASE("Server and Client decide nothing before a message is complete", "[comm][handshake]") {
  for (std::size_t bytes = 0; bytes < sizeof(Introduction); ++bytes) {
    Conversation talk;
    talk.greet();
    const Introduction words = talk.client.introduce(Key{job, Purpose::data});
    hear(talk.server, bytes_of(words).substr(0, bytes));
    if (talk.server.stage() != Server::Stage::hearing) FAIL("a server has decided after " << bytes << " bytes");
  }
  for (std::size_t bytes = 0; bytes < sizeof(Answer); ++bytes) {
    Conversation talk;
    talk.greet();
    talk.introduce();
    hear(talk.client, bytes_of(talk.server.answer(Verdict::welcome)).substr(0, bytes));
    if (talk.client.stage() != Client::Stage::introduced) FAIL("a client has decided after " << bytes << " bytes");
  }
}

TEST_CASE("Server and Client recognise strangers by their first bytes", "[comm][handshake]") {
  const std::string hello = GENERATE(as<std::string>{}, "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "SSH-2.0-x", "p", "pdp tcp\n",
                                     std::string(4096, '\0'), std::string(4096, '\xff'));
  Conversation talk;
  hear(talk.server, hello);
  hear(talk.client, hello);
  if (hello == "p") {
    CHECK(talk.server.stage() == Server::Stage::hearing);
    CHECK(talk.client.stage() == Client::Stage::greeted);
    return;
  }
  CHECK(talk.server.stage() == Server::Stage::refused);
  CHECK(talk.server.verdict() == Verdict::stranger);
  CHECK(talk.client.stage() == Client::Stage::refused);
  CHECK(talk.client.verdict() == Verdict::stranger);
}

TEST_CASE("Server and Client refuse random bytes after a valid beginning", "[comm][handshake]") {
  std::mt19937 random{3};
  for (int trial = 0; trial < 2000; ++trial) {
    Conversation talk;
    std::string bytes(4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::ranges::copy(Introduction::pdp, bytes.begin());
    hear(talk.server, bytes);
    if (talk.server.verdict() != Verdict::unknown) FAIL("a server believes random bytes");
    std::ranges::copy(Greeting::pdp, bytes.begin());
    hear(talk.client, bytes);
    if (talk.client.stage() != Client::Stage::refused) FAIL("a client believes random bytes");
  }
}

TEST_CASE("Client recognises a later format of the handshake as another version of pdp", "[comm][handshake]") {
  Conversation talk;
  talk.greeting[6] = '2';
  talk.greet();
  CHECK(talk.client.verdict() == Verdict::other_format);
  CHECK_THAT(explain(talk.client, "rank 0"), Contains("rank 0 runs a version of pdp whose handshake differs") && Contains("0.1.0"));
}

TEST_CASE("Each Server and each Client draws a nonce of its own", "[comm][handshake]") {
  Conversation one, two;
  CHECK(one.greeting != two.greeting);
  one.greet();
  const Introduction first = one.client.introduce(Key{job, Purpose::data});
  Client again{client_self(), 0};
  hear(again, one.greeting);
  CHECK(first.nonce != again.introduce(Key{job, Purpose::data}).nonce);
}

TEST_CASE("hmac computes HMAC-SHA256 as in RFC 4231", "[comm][handshake]") {
  const auto hex = [](const Tag& tag) {
    std::string words;
    for (const unsigned char byte : tag) {
      words += "0123456789abcdef"[byte / 16];
      words += "0123456789abcdef"[byte % 16];
    }
    return words;
  };
  CHECK(hex(hmac("Jefe", "what do ya want for nothing?")) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac(std::string(20, '\x0b'), "Hi There")) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac("", "")) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

}  // namespace handshake_test
