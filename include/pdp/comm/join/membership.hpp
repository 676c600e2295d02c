#pragma once

#include <string.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace pdp::comm {

/// Bytes that only the ranks of one job know. They are wiped from memory with it. No message shows them.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_{std::move(bytes)} {}
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept { swap(other); }
  Secret& operator=(Secret other) noexcept {
    swap(other);
    return *this;
  }
  ~Secret() { ::explicit_bzero(bytes_.data(), bytes_.size()); }

  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  void swap(Secret& other) noexcept { bytes_.swap(other.bytes_); }  // which leaves no bytes behind, as a move of a short string would

  std::string bytes_;
};

/// What tells a job from others, and an attempt to run it from earlier ones: names that all its ranks agree on. Empty where nobody has
/// given it any.
struct Job {
  std::string name{};
  std::string attempt{};
};

/// By which a process proves to the others of its job that it is one of them.
struct Membership {
  Secret secret{};
  Job job{};
};

}  // namespace pdp::comm
