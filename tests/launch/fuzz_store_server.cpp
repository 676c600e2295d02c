#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

using namespace pdp;

namespace {

comm::TimePoint patience() { return comm::Clock::now() + std::chrono::seconds{60}; }

launch::Access access() {
  launch::Access access;
  access.secret = comm::Secret{"sixteen bytes or more"};
  return access;
}

/// A store with one rank that stays connected.
struct Store {
  launch::TcpStoreServer server{"127.0.0.1", 0, 3, access()};
  launch::TcpStore rank_0{"127.0.0.1", server.port(), patience(), 0, 3, access()};

  Store() { rank_0.set("there", "value"); }
};

// libFuzzer's timer interrupts system calls.
comm::Descriptor connect(std::uint16_t port) {
  std::string why;
  const auto address = launch::resolve("127.0.0.1", port, why).at(0);
  for (;;) {
    comm::Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    // Closing sends a reset, so that no port stays in TIME_WAIT for a minute.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (::connect(socket.get(), address.get(), address.size) == 0) return socket;
    if (errno != EINTR) std::abort();
  }
}
ssize_t receive(const comm::Descriptor& socket, std::span<char> to) {
  ssize_t count = 0;
  do count = ::recv(socket.get(), to.data(), to.size(), 0);
  while (count < 0 && errno == EINTR);
  return count;
}
void send(const comm::Descriptor& socket, std::string_view bytes) {
  static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// Completes the handshake as rank 1.
void join(const comm::Descriptor& socket) {
  namespace handshake = comm::handshake;
  handshake::Client client{handshake::Self::of(handshake::Purpose::store, 1, 3, {}), handshake::no_rank};
  const auto hear = [&](handshake::Client::Stage stage) {
    while (client.stage() == stage) {
      const ssize_t count = receive(socket, client.space());
      if (count <= 0) std::abort();
      client.took(static_cast<std::size_t>(count));
    }
  };
  hear(handshake::Client::Stage::greeted);
  const handshake::Key key{{.secret = *access().secret, .job = {}}, handshake::Purpose::store};
  send(socket, handshake::bytes_of(client.introduce(key)));
  hear(handshake::Client::Stage::introduced);
  if (client.stage() != handshake::Client::Stage::welcome) std::abort();
}

/// Returns well-formed requests whose kinds, lengths and contents come from `bytes`.
std::string requests(std::string_view bytes) {
  std::string all;
  while (bytes.size() >= 4) {
    const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
    launch::StoreMessage message{.kind = static_cast<launch::StoreMessage::Kind>(number(0) % 12), .milliseconds = number(1)};
    const std::size_t key = std::min<std::size_t>(number(2) % 8, bytes.size() - 4);
    const std::size_t value = std::min<std::size_t>(number(3), bytes.size() - 4 - key);
    all += launch::encode(message, bytes.substr(4, key), bytes.substr(4 + key, value));
    bytes.remove_prefix(4 + key + value);
  }
  return all;
}

}  // namespace

/// libcrypto keeps a random generator for each thread. LeakSanitizer does not always find the one of the store's thread while that runs.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcrypto"; }  // NOLINT(bugprone-reserved-identifier)

/// Checks that the job's store survives any bytes from a stranger or a rank, keeps its values and answers the other ranks. Bit 0 of the
/// first byte: the sender joins as a rank. Bit 1: the other bytes are turned into well-formed requests.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static auto& store = *new std::optional<Store>;  // never destroyed, as its thread may outlive libcrypto's cleanup at exit
  static int inputs = 0;
  if (size == 0) return 0;
  if (inputs++ % 1024 == 0 || !store) {
    store.reset();
    store.emplace();
  }
  const std::string_view said{reinterpret_cast<const char*>(bytes) + 1, size - 1};
  const bool is_rank = (bytes[0] & 1) != 0, is_well_formed = (bytes[0] & 2) != 0;
  {
    const comm::Descriptor socket = connect(store->server.port());
    if (is_rank) join(socket);
    send(socket, is_well_formed ? requests(said) : std::string{said});
    ::shutdown(socket.get(), SHUT_WR);
    char ignored[4096];
    while (receive(socket, ignored) > 0) continue;
  }
  try {
    if (store->rank_0.get("there") != "value") std::abort();
  } catch (const CommunicationError&) {
    if (!is_rank) std::abort();  // a stranger cannot end the job
    store.reset();               // a rank may report that it cannot start, which ends the job
  }
  return 0;
}
