#pragma once

#include <string.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// Bytes that only the ranks of one job know. The destructor wipes them from memory. No message shows them.
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
  void swap(Secret& other) noexcept { bytes_.swap(other.bytes_); }  // unlike a move of a short string, leaves no bytes behind

  std::string bytes_;
};

/// Names that distinguish a job from others, and an attempt to run it from earlier ones. All its ranks agree on them. Empty if none is set.
struct Job {
  std::string name{};
  std::string attempt{};
};

/// The credentials with which a process proves that it belongs to its job.
struct Membership {
  Secret secret{};
  Job job{};
};

}  // namespace pdp::comm
