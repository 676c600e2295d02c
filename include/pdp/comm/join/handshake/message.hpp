#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <pdp/comm/join/handshake/build.hpp>
#include <pdp/comm/join/handshake/cryptography.hpp>

/// What the two ends of a new connection say to each other before anything else: Greeting, Introduction, Answer. All three are of fixed
/// size. Numbers are in the byte order of the machine; a machine of another order finds another Build, and can say so.
namespace pdp::comm::handshake {

/// A number that is drawn for one handshake and never again.
using Nonce = std::array<unsigned char, 32>;
/// Stands for the name of a job, or of an attempt, without showing it.
using Mark = std::array<unsigned char, 16>;

/// What a connection is for. What is said for one purpose proves nothing for another.
enum class Purpose : std::uint32_t { store = 1, data = 2, pulse = 3 };

/// Whether who serves one purpose takes connections for another: a rank listens for data and for pulses at one address.
constexpr bool serves(Purpose server, Purpose asked) { return asked == server || (server == Purpose::data && asked == Purpose::pulse); }

/// How those who belong to the job come to know its secret.
enum class Grounds : std::uint32_t {
  secret = 1,     // the user or the launcher has given it to each of them
  this_host = 2,  // it lies in memory of the host that processes of the same user can open
  munge = 3,      // munge hands it to processes of the same user
  open = 4        // there is none: the user has said so
};

/// What is said of one who asks to be let in.
enum class Verdict : std::uint32_t {
  welcome = 1,
  unknown = 2,        // does not know the secret
  other_build = 3,    // of the job, but the two could not understand each other
  other_size = 4,     // believes that the world has another size
  no_such_rank = 5,   // there is none, or it has no business on this connection
  duplicate = 6,      // the rank is there already
  other_job = 7,      // these four are found by the one who asks, and never sent
  other_attempt = 8,  // of the same job
  other_format = 9,   // of the handshake itself
  stranger = 10,      // no pdp
  crossed = 11        // the rank that is called is calling this one itself
};

/// A process of no rank: the host of the store.
inline constexpr std::int32_t no_rank = -1;

/// The server begins.
struct Greeting {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'h', 'i', '1', '\n'};
  static constexpr std::size_t same_in_all_formats = 6;  // bytes of the above

  std::array<char, 8> magic = pdp;
  Purpose purpose{};
  Grounds grounds{};
  Build build{};
  Nonce nonce{};
  Mark job{}, attempt{};
  std::int32_t rank = no_rank;  // who is speaking
  std::int32_t size = 0;        // of the world
};
static_assert(sizeof(Greeting) == 136 && std::has_unique_object_representations_v<Greeting>);

/// Follows a greeting whose grounds are this_host or munge: by which processes of the same user learn the secret, and nobody else. Filled
/// up with zeros.
using Credential = std::array<char, 1024>;

constexpr bool has_credential(Grounds grounds) { return grounds == Grounds::this_host || grounds == Grounds::munge; }

/// The client's answer.
struct Introduction {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'm', 'e', '1', '\n'};

  std::array<char, 8> magic = pdp;
  Purpose purpose{};
  std::int32_t from = no_rank;  // who is speaking
  Build build{};
  Nonce nonce{};
  Mark job{}, attempt{};
  std::int32_t to = no_rank;
  std::int32_t size = 0;
  Tag tag{};  // of all that was said until here
};
static_assert(sizeof(Introduction) == 168 && std::has_unique_object_representations_v<Introduction>);

/// The server's last word. Then what the connection is for begins, or it ends.
struct Answer {
  static constexpr std::array<char, 8> pdp{'p', 'd', 'p', ' ', 'o', 'k', '1', '\n'};

  std::array<char, 8> magic = pdp;
  Verdict verdict = Verdict::unknown;
  std::uint32_t reserved = 0;
  Tag tag{};  // of all that was said until here; zero for one who is unknown
};
static_assert(sizeof(Answer) == 48 && std::has_unique_object_representations_v<Answer>);

template <class Message>
std::string_view bytes_of(const Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

}  // namespace pdp::comm::handshake
