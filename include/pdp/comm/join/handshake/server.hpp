#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <pdp/comm/join/handshake/key.hpp>

namespace pdp::comm::handshake {

/// The handshake of one connection, on the side of the server, which has accepted it. It does no input or output itself. The owner of the
/// connection sends the results of greeting() and answer(), reads into space(), reports the bytes by took(), and closes the connection
/// after a timeout of its own.
class Server {
 public:
  enum class Stage {
    hearing,  // waits for the introduction
    asked,    // a member of the job asks to join; the owner may still refuse it
    refused   // send answer(verdict()), unless the verdict is `stranger`
  };

  /// `credential`: the bytes of the Credential if the grounds require one, else empty. Draws a nonce.
  Server(const Self& self, const Key& key, Grounds grounds, std::string_view credential = {})
      : key_{key},
        greeting_{.purpose = self.purpose,
                  .grounds = grounds,
                  .build = self.build,
                  .nonce = draw<sizeof(Nonce)>(),
                  .job = self.job,
                  .attempt = self.attempt,
                  .rank = self.rank,
                  .size = self.size} {
    said_ = bytes_of(greeting_);
    if (has_credential(grounds)) {
      Credential filled{};
      std::memcpy(filled.data(), credential.data(), std::min(credential.size(), filled.size()));
      said_ += bytes_of(filled);
    }
  }

  /// Returns the bytes to be sent first.
  [[nodiscard]] std::string_view greeting() const { return std::string_view{said_}.substr(0, greeting_bytes()); }

  /// Returns the memory for the bytes of the client, as many as are still expected.
  [[nodiscard]] std::span<char> space() {
    return {reinterpret_cast<char*>(&theirs_) + received_, stage_ == Stage::hearing ? sizeof theirs_ - received_ : 0};
  }
  /// Processes bytes that were read into space().
  void took(std::size_t bytes) {
    received_ += bytes;
    if (std::memcmp(&theirs_, Introduction::pdp.data(), std::min(received_, Introduction::pdp.size())) != 0)
      refuse(Verdict::stranger);
    else if (received_ == sizeof theirs_)
      judge();
  }

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] Verdict verdict() const { return verdict_; }
  /// Returns the introduction of the client. It is authentic unless the verdict is `stranger` or `unknown`.
  [[nodiscard]] const Introduction& theirs() const { return theirs_; }

  /// Returns the answer, to be sent to a client that has asked or was refused.
  [[nodiscard]] Answer answer(Verdict verdict) const {
    Answer answer{.verdict = verdict};
    if (verdict != Verdict::unknown) answer.tag = key_.sign("server", said_ + std::string{bytes_of(answer)});
    return answer;
  }

 private:
  [[nodiscard]] std::size_t greeting_bytes() const {
    return sizeof greeting_ + (has_credential(greeting_.grounds) ? sizeof(Credential) : 0);
  }
  void refuse(Verdict verdict) {
    verdict_ = verdict;
    stage_ = Stage::refused;
  }

  void judge() {
    Introduction unsigned_words = theirs_;
    unsigned_words.tag = {};
    const Tag expected = key_.sign("client", said_ + std::string{bytes_of(unsigned_words)});
    said_ += bytes_of(theirs_);
    if (!equal(theirs_.tag, expected)) return refuse(Verdict::unknown);
    // From here on the introduction is authentic.
    if (theirs_.build != greeting_.build) return refuse(Verdict::other_build);
    if (theirs_.size != greeting_.size) return refuse(Verdict::other_size);
    if (!serves(greeting_.purpose, theirs_.purpose) || theirs_.job != greeting_.job || theirs_.attempt != greeting_.attempt ||
        theirs_.to != greeting_.rank || theirs_.from < 0 || theirs_.from >= greeting_.size || theirs_.from == greeting_.rank)
      return refuse(Verdict::no_such_rank);
    verdict_ = Verdict::welcome;
    stage_ = Stage::asked;
  }

  Key key_;
  Greeting greeting_;
  std::string said_;  // all messages of both sides so far
  Introduction theirs_{};
  std::size_t received_ = 0;
  Stage stage_ = Stage::hearing;
  Verdict verdict_ = Verdict::stranger;
};

}  // namespace pdp::comm::handshake
