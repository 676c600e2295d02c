#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pdp/comm/join/handshake/key.hpp>

namespace pdp::comm::handshake {

/// The handshake of one connection, on the side of the client, which has opened it. It does no input or output itself. The owner of the
/// connection reads into space(), reports the bytes by took(), sends the result of introduce(), and closes the connection after a timeout
/// of its own. Until the handshake ends in `welcome`, messages of the server can only make the client leave.
class Client {
 public:
  enum class Stage {
    greeted,     // waits for the greeting
    invited,     // has the greeting; the owner obtains the key and calls introduce()
    introduced,  // waits for the answer
    welcome,     // the server has proved its identity, and has accepted the client
    refused      // by either side; verdict() says why
  };

  /// `whom`: the rank to connect to, or no_rank for the store. `asked`: the purpose of the connection, which a server with the purpose of
  /// `self` must accept.
  Client(const Self& self, std::int32_t whom, Purpose asked) : self_{self}, whom_{whom}, asked_{asked} {}
  Client(const Self& self, std::int32_t whom) : Client{self, whom, self.purpose} {}

  /// Returns the memory for the bytes of the server, as many as are still expected.
  [[nodiscard]] std::span<char> space() {
    switch (stage_) {
      case Stage::greeted:
        if (received_ < sizeof greeting_) return rest_of(greeting_, received_);
        return rest_of(credential_, received_ - sizeof greeting_);
      case Stage::introduced:
        return rest_of(answer_, received_);
      default:
        return {};
    }
  }
  /// Processes bytes that were read into space().
  void took(std::size_t bytes) {
    received_ += bytes;
    if (stage_ == Stage::greeted)
      look_at_greeting();
    else if (received_ == sizeof answer_)
      look_at_answer();
  }

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] Verdict verdict() const { return verdict_; }
  /// Returns whether the sender of the verdict has proved that it knows the secret.
  [[nodiscard]] bool verdict_is_proved() const { return proved_; }
  [[nodiscard]] const Self& self() const { return self_; }
  [[nodiscard]] const Greeting& greeting() const { return greeting_; }
  [[nodiscard]] std::string_view credential() const { return {credential_.data(), ::strnlen(credential_.data(), credential_.size())}; }

  /// Returns the introduction, to be sent to the server. Draws a nonce. Call it in the stage `invited`.
  [[nodiscard]] Introduction introduce(const Key& key) {
    Introduction words{.purpose = asked_,
                       .from = self_.rank,
                       .build = self_.build,
                       .nonce = draw<sizeof(Nonce)>(),
                       .job = self_.job,
                       .attempt = self_.attempt,
                       .to = whom_,
                       .size = self_.size};
    said_ = bytes_of(greeting_);
    if (has_credential(greeting_.grounds)) said_ += bytes_of(credential_);
    words.tag = key.sign("client", said_ + std::string{bytes_of(words)});
    said_ += bytes_of(words);
    key_ = key;
    received_ = 0;
    stage_ = Stage::introduced;
    return words;
  }

 private:
  template <class Message>
  static std::span<char> rest_of(Message& message, std::size_t received) {
    return {reinterpret_cast<char*>(&message) + received, sizeof message - received};
  }

  void refuse(Verdict verdict) {
    verdict_ = verdict;
    stage_ = Stage::refused;
  }

  void look_at_greeting() {
    const std::size_t begun = std::min(received_, Greeting::pdp.size());
    if (std::memcmp(&greeting_, Greeting::pdp.data(), std::min(begun, Greeting::same_in_all_formats)) != 0)
      return refuse(Verdict::stranger);
    if (std::memcmp(&greeting_, Greeting::pdp.data(), begun) != 0) return refuse(Verdict::other_format);
    if (received_ < sizeof greeting_) return;
    if (greeting_.grounds < Grounds::secret || greeting_.grounds > Grounds::open || greeting_.purpose != self_.purpose ||
        greeting_.rank != whom_)
      return refuse(Verdict::stranger);
    if (greeting_.job != self_.job) return refuse(Verdict::other_job);
    if (greeting_.attempt != self_.attempt) return refuse(Verdict::other_attempt);
    if (received_ == sizeof greeting_ + (has_credential(greeting_.grounds) ? sizeof credential_ : 0)) stage_ = Stage::invited;
    // Do not leave because of another build or size: the server should learn of it from an authenticated client.
  }

  void look_at_answer() {
    Answer unsigned_words = answer_;
    unsigned_words.tag = {};
    proved_ = equal(answer_.tag, key_->sign("server", said_ + std::string{bytes_of(unsigned_words)}));
    if (!proved_) return refuse(greeting_.build == self_.build ? Verdict::unknown : Verdict::other_build);
    verdict_ = answer_.verdict;
    stage_ = verdict_ == Verdict::welcome ? Stage::welcome : Stage::refused;
  }

  Self self_;
  std::int32_t whom_;
  Purpose asked_;
  Greeting greeting_{};
  Credential credential_{};
  Answer answer_{};
  std::string said_;  // all messages of both sides so far
  std::optional<Key> key_;
  std::size_t received_ = 0;
  Stage stage_ = Stage::greeted;
  Verdict verdict_ = Verdict::stranger;
  bool proved_ = false;
};

}  // namespace pdp::comm::handshake
