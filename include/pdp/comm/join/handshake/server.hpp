#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <pdp/comm/join/handshake/key.hpp>

namespace pdp::comm::handshake {

/// The handshake of one connection, as seen by the one who was called. It moves no bytes itself: the owner of the connection sends what
/// greeting() and answer() give, reads to space(), and closes it when it has waited for too long.
class Server {
 public:
  enum class Stage {
    hearing,
    asked,   // somebody who belongs to the job asks to be let in; the owner may still say no
    refused  // so it should be told, if it is no stranger: then it is not worth a word
  };

  /// `credential`: what the grounds need, or nothing. Draws a nonce.
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

  /// What is sent first.
  [[nodiscard]] std::string_view greeting() const { return std::string_view{said_}.substr(0, greeting_bytes()); }

  /// Where the client's bytes go, as many as are still expected.
  [[nodiscard]] std::span<char> space() {
    return {reinterpret_cast<char*>(&theirs_) + received_, stage_ == Stage::hearing ? sizeof theirs_ - received_ : 0};
  }
  void took(std::size_t bytes) {
    received_ += bytes;
    if (std::memcmp(&theirs_, Introduction::pdp.data(), std::min(received_, Introduction::pdp.size())) != 0)
      refuse(Verdict::stranger);
    else if (received_ == sizeof theirs_)
      judge();
  }

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] Verdict verdict() const { return verdict_; }
  /// Of one who is not unknown: true, whatever the verdict.
  [[nodiscard]] const Introduction& theirs() const { return theirs_; }

  /// What is to be sent to one who has asked, or was refused.
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
    // Whatever it has said is true.
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
  std::string said_;  // by both, from the beginning
  Introduction theirs_{};
  std::size_t received_ = 0;
  Stage stage_ = Stage::hearing;
  Verdict verdict_ = Verdict::stranger;
};

}  // namespace pdp::comm::handshake
