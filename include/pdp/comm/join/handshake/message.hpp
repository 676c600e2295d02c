#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <pdp/comm/join/handshake/build.hpp>
#include <pdp/comm/join/handshake/cryptography.hpp>

/// The messages that the two ends of a new connection exchange before anything else: Greeting, Introduction, Answer. All three have fixed
/// sizes. Numbers are in the byte order of the machine. A machine of another order finds a different Build, and can report it.
namespace pdp::comm::handshake {

/// A random number that is used for one handshake only.
using Nonce = std::array<unsigned char, 32>;
/// A digest that stands for the name of a job, or of an attempt, without showing it.
using Mark = std::array<unsigned char, 16>;

/// The purpose of a connection. A message for one purpose proves nothing for another.
enum class Purpose : std::uint32_t { store = 1, data = 2, pulse = 3 };

/// Returns whether a server of one purpose accepts connections for another: a rank listens for data and for pulses at one address.
constexpr bool serves(Purpose server, Purpose asked) { return asked == server || (server == Purpose::data && asked == Purpose::pulse); }

/// How the members of a job obtain its secret.
enum class Grounds : std::uint32_t {
  secret = 1,     // from the user or the launcher
  this_host = 2,  // from memory of the host that processes of the same user can open
  munge = 3,      // from munge, which gives it to processes of the same user
  open = 4        // there is none, as the user has chosen
};

/// The result of a handshake, for the client.
enum class Verdict : std::uint32_t {
  welcome = 1,
  unknown = 2,        // the client does not know the secret
  other_build = 3,    // the client belongs to the job, but the two builds are incompatible
  other_size = 4,     // the client expects another size of the world
  no_such_rank = 5,   // there is no such rank, or it does not belong on this connection
  duplicate = 6,      // the rank has joined already
  other_job = 7,      // found by the client, like the next three; never sent
  other_attempt = 8,  // another attempt of the same job
  other_format = 9,   // another format of the handshake itself
  stranger = 10,      // the peer is not pdp; the server may find this, too
  crossed = 11        // the called rank is calling the client at the same time
};

/// Stands for a process that is no rank: the host of the store.
inline constexpr std::int32_t no_rank = -1;

/// The first message, from the server.
struct Greeting {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'h', 'i', '1', '\n'};
  static constexpr std::size_t same_in_all_formats = 6;  // the first bytes of `pdp`

  std::array<char, 8> magic = pdp;
  Purpose purpose{};
  Grounds grounds{};
  Build build{};
  Nonce nonce{};
  Mark job{}, attempt{};
  std::int32_t rank = no_rank;  // the sender
  std::int32_t size = 0;        // of the world
};
static_assert(sizeof(Greeting) == 136 && std::has_unique_object_representations_v<Greeting>);

/// Follows a greeting with the grounds this_host or munge. Only processes of the same user can obtain the secret with it. Padded with
/// zeros.
using Credential = std::array<char, 1024>;

/// Returns whether a credential follows a greeting with these grounds.
constexpr bool has_credential(Grounds grounds) { return grounds == Grounds::this_host || grounds == Grounds::munge; }

/// The reply of the client.
struct Introduction {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'm', 'e', '1', '\n'};

  std::array<char, 8> magic = pdp;
  Purpose purpose{};
  std::int32_t from = no_rank;  // the sender
  Build build{};
  Nonce nonce{};
  Mark job{}, attempt{};
  std::int32_t to = no_rank;
  std::int32_t size = 0;
  Tag tag{};  // of all messages so far, this one included
};
static_assert(sizeof(Introduction) == 168 && std::has_unique_object_representations_v<Introduction>);

/// The last message, from the server. After it the connection serves its purpose, or is closed.
struct Answer {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'o', 'k', '1', '\n'};

  std::array<char, 8> magic = pdp;
  Verdict verdict = Verdict::unknown;
  std::uint32_t reserved = 0;
  Tag tag{};  // of all messages so far, this one included; zero if the verdict is unknown
};
static_assert(sizeof(Answer) == 48 && std::has_unique_object_representations_v<Answer>);

/// Returns a view of the bytes of a message.
template <class Message>
std::string_view bytes_of(const Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

}  // namespace pdp::comm::handshake
