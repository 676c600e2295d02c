#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/access/access.hpp>
#include <pdp/launch/access/munge.hpp>
#include <pdp/launch/access/shared_secret.hpp>
#include <pdp/launch/net/address.hpp>

namespace pdp::launch {

using comm::handshake::Grounds;

/// Returns the grounds for a store at that address: how ranks prove to it that they belong to the job (docs/security.md lists the grounds).
/// All ranks reach the same result, since it follows from settings that they share. Throws UsageError if ranks have no way to prove it.
inline Grounds choose_grounds(const Access& access, const Address& store) {
  if (access.secret) return Grounds::secret;
  if (access.insecure) return Grounds::open;
  if (!access.munge_socket.empty()) return Grounds::munge;
  if (access.together || store.loopback()) return Grounds::this_host;
  if (access.slurm) return Grounds::munge;
  throw UsageError{text(
      "the job's store is at ", store.number(),
      ", which other hosts can reach, and nothing authenticates the ranks of this job. "
      "Either set PDP_SECRET_FILE on all ranks to a file with the same random bytes on all hosts, which only you can read, ",
      detail::how_to_make_a_secret,
      "; or start the job with Slurm and let munge authenticate its ranks (without Slurm, set PDP_MUNGE_SOCKET to munge's socket); or set "
      "PDP_INSECURE=1 if anyone who reaches this host may join the job")};
}

/// Returns a random secret of 32 bytes.
inline comm::Secret draw_secret() { return comm::Secret{std::string{comm::handshake::view(comm::handshake::draw<32>())}}; }

/// Returns a random secret in hexadecimal digits, which fits into an environment variable.
inline comm::Secret draw_secret_words() {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string words;
  for (const unsigned char byte : comm::handshake::draw<32>()) words.append({digits[byte / 16], digits[byte % 16]});
  return comm::Secret{std::move(words)};
}

/// The means by which the host of a store admits ranks: the grounds, the secret and, if the grounds need one, a credential that carries the
/// secret.
class Voucher {
 public:
  /// Throws UsageError if no grounds apply (see choose_grounds), and ConfigError if the system does not provide what the grounds need
  /// before the deadline.
  Voucher(const Access& access, const Address& store, comm::TimePoint deadline)
      : grounds_{choose_grounds(access, store)}, membership_{.secret = access.secret.value_or(comm::Secret{}), .job = access.job} {
    if (!comm::handshake::has_credential(grounds_)) return;
    membership_.secret = draw_secret();
    if (grounds_ == Grounds::this_host) {
      credential_ = shared_.emplace(membership_.secret).place();
    } else {
      credential_ = Munge{access.munge_socket}.encode(membership_.secret, deadline);
      if (credential_.size() >= sizeof(comm::handshake::Credential)) throw ConfigError{"munge's credentials are longer than pdp supports"};
    }
  }

  [[nodiscard]] Grounds grounds() const { return grounds_; }
  [[nodiscard]] const comm::Membership& membership() const { return membership_; }
  /// Returns the credential; empty if the grounds need none.
  [[nodiscard]] const std::string& credential() const { return credential_; }

 private:
  Grounds grounds_;
  comm::Membership membership_;
  std::string credential_;
  std::optional<SharedSecret> shared_;
};

/// Returns the secret by which a rank proves to the host of the store that it belongs to the job, on the grounds that the host has chosen.
/// `store` describes the store in error messages. Throws ConfigError if the secret cannot be obtained, or if the grounds are weaker than
/// this rank's own settings.
inline comm::Secret obtain_secret(const Access& access, Grounds grounds, std::string_view credential, std::string_view store,
                                  comm::TimePoint deadline) {
  const std::size_t size = 32;
  if (access.secret && grounds != Grounds::secret)
    throw ConfigError{text("this rank has a secret (PDP_SECRET_FILE or PDP_SECRET), but ", store,
                           " does not require one; set the same secret on its host and on all ranks")};
  switch (grounds) {
    case Grounds::secret:
      if (!access.secret)
        throw ConfigError{text(store, " requires a secret, but this rank has none; set PDP_SECRET_FILE or PDP_SECRET as on its host")};
      return *access.secret;
    case Grounds::this_host:
      return SharedSecret::read(credential, size);
    case Grounds::munge: {
      comm::Secret secret = Munge{access.munge_socket}.decode(std::string{credential}, deadline);
      if (secret.bytes().size() != size) throw ConfigError{text("the munge payload of ", store, " is not a pdp secret")};
      return secret;
    }
    case Grounds::open:
      break;
  }
  if (!access.insecure)
    throw ConfigError{
        text(store, " lets everyone join (PDP_INSECURE=1), but PDP_INSECURE=1 is not set on this rank; set it for all ranks, or for none")};
  return {};
}

}  // namespace pdp::launch
