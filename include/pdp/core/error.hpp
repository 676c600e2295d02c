#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace pdp {

/// Joins text and numbers to one string, without a stream. For messages, not for a step.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string joined;
  const auto append = [&joined](const auto& part) {
    using Part = std::remove_cvref_t<decltype(part)>;
    if constexpr (std::same_as<Part, bool>)
      joined += part ? "true" : "false";
    else if constexpr (std::same_as<Part, char>)
      joined += part;
    else if constexpr (std::is_arithmetic_v<Part>)
      joined += std::to_string(part);
    else
      joined += std::string_view{part};
  };
  (append(parts), ...);
  return joined;
}

/// What pdp throws. Each message says what was expected, what was found, and what to do about it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sizes that do not fit: of layers, of batches, of buffers.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A setting that cannot work: an empty world, a batch larger than the set.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A command line or an environment that contradicts itself. Programs end with exit code 2 on it.
class UsageError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// A file that is missing, cannot be written, or does not hold what it should.
class FileError : public Error {
 public:
  using Error::Error;
};

/// A file whose contents do not match the sum stored with them.
class ChecksumError : public FileError {
 public:
  using FileError::FileError;
};

/// A plan that cannot run: a message without its receive, a cycle of waits, a gradient used before it is there.
class PlanError : public Error {
 public:
  using Error::Error;
};

/// What goes wrong between ranks. A communicator that has thrown one of these stays aborted.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// A rank is gone. Every survivor throws it.
class PeerLost : public CommunicationError {
 public:
  PeerLost(int rank, const std::string& message) : CommunicationError{message}, rank_{rank} {}
  /// The rank that is gone, in the world.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A deadline has passed.
class Timeout : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// Ranks of one group have made different calls. The message shows both.
class MismatchedCollective : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

}  // namespace pdp
