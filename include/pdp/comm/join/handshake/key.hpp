#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <pdp/comm/join/handshake/message.hpp>
#include <pdp/comm/join/membership.hpp>

namespace pdp::comm::handshake {

/// The key of connections for one purpose in one attempt of one job, derived from the secret of the job. Each side of a connection proves
/// that it knows the key.
class Key {
 public:
  /// `salt`: distinguishes several worlds of one job. Throws Error if the key cannot be computed.
  Key(const Membership& membership, Purpose purpose, std::string_view salt = {}) {
    std::string words{"pdp: key of a connection"};
    // Each part with its length, so that no two jobs lead to the same words.
    for (const std::string_view part : {std::string_view{purpose == Purpose::store ? "store" : "data"},
                                        std::string_view{membership.job.name}, std::string_view{membership.job.attempt}, salt}) {
      const std::uint64_t bytes = part.size();
      words.append(bytes_of(bytes)).append(part);
    }
    bytes_ = hmac(membership.secret.bytes(), words);
  }
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key() { ::OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  /// Returns the tag of `transcript`, all messages so far, for the client or for the server. Tags of the two differ, so a tag that is sent
  /// back to its sender proves nothing.
  [[nodiscard]] Tag sign(std::string_view speaker, std::string_view transcript) const {
    return hmac(view(bytes_), std::string{"pdp: handshake, said by the "}.append(speaker).append(transcript));
  }

 private:
  Tag bytes_;
};

/// Returns the mark of a name. `kind`: distinguishes names of jobs from names of attempts.
inline Mark mark_of(std::string_view kind, std::string_view name) {
  const Tag tag = hmac(kind, name);
  Mark mark;
  std::memcpy(mark.data(), tag.data(), mark.size());
  return mark;
}

/// The identity of a process, as it introduces itself on a connection.
struct Self {
  Purpose purpose{};
  std::int32_t rank = no_rank;
  std::int32_t size = 0;
  Mark job{}, attempt{};
  Build build = Build::here();

  static Self of(Purpose purpose, int rank, int size, const Job& job) {
    return {.purpose = purpose,
            .rank = rank,
            .size = size,
            .job = mark_of("pdp: job", job.name),
            .attempt = mark_of("pdp: attempt", job.attempt)};
  }
};

}  // namespace pdp::comm::handshake
