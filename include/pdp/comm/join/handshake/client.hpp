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

/// The handshake of one connection, as seen by the one who has called. It moves no bytes itself: the owner of the connection reads to
/// space(), sends what introduce() gives, and closes it when it has waited for too long. Until it ends in `welcome`, what the other says
/// is believed only as far as it makes this one go away.
class Client {
 public:
  enum class Stage {
    greeted,     // waits for the greeting
    invited,     // has it; the owner finds the key and calls introduce()
    introduced,  // waits for the answer
    welcome,     // the other has proved to be whom it was called for, and takes this one for what it is
    refused      // by either; verdict() says why
  };

  /// `whom`: the rank that is called, or nobody. `asked`: what the connection is to be for, which who has the purpose of `self` serves.
  Client(const Self& self, std::int32_t whom, Purpose asked) : self_{self}, whom_{whom}, asked_{asked} {}
  Client(const Self& self, std::int32_t whom) : Client{self, whom, self.purpose} {}

  /// Where the server's bytes go, as many as are still expected.
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
  void took(std::size_t bytes) {
    received_ += bytes;
    if (stage_ == Stage::greeted)
      look_at_greeting();
    else if (received_ == sizeof answer_)
      look_at_answer();
  }

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] Verdict verdict() const { return verdict_; }
  /// Whether it was spoken by one who knows the secret.
  [[nodiscard]] bool verdict_is_proved() const { return proved_; }
  [[nodiscard]] const Self& self() const { return self_; }
  [[nodiscard]] const Greeting& greeting() const { return greeting_; }
  [[nodiscard]] std::string_view credential() const { return {credential_.data(), ::strnlen(credential_.data(), credential_.size())}; }

  /// What is to be sent to the one who has invited. Draws a nonce.
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
    // Another build or size is no reason to go: the other is to hear of it from one that it believes.
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
  std::string said_;  // by both, from the beginning
  std::optional<Key> key_;
  std::size_t received_ = 0;
  Stage stage_ = Stage::greeted;
  Verdict verdict_ = Verdict::stranger;
  bool proved_ = false;
};

}  // namespace pdp::comm::handshake
