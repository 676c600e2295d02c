#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

namespace detail {

/// A part of a message: a string, a character or a number. Borrows the string. The constructors are defined out of line, since a call costs
/// the compiler less than an inlined body.
class Piece {
 public:
  [[gnu::cold]] Piece(const char* words) noexcept;
  [[gnu::cold]] Piece(std::string_view words) noexcept;
  [[gnu::cold]] Piece(const std::string& words) noexcept;
  [[gnu::cold]] Piece(char letter) noexcept;
  [[gnu::cold]] Piece(bool yes) noexcept;
  [[gnu::cold]] Piece(int number) noexcept;  // also for types that promote to int
  [[gnu::cold]] Piece(long number) noexcept;
  [[gnu::cold]] Piece(long long number) noexcept;
  [[gnu::cold]] Piece(unsigned number) noexcept;
  [[gnu::cold]] Piece(unsigned long number) noexcept;
  [[gnu::cold]] Piece(unsigned long long number) noexcept;
  [[gnu::cold]] Piece(double number) noexcept;
  [[gnu::cold]] Piece(long double number) noexcept;

  void append_to(std::string& joined) const;

 private:
  enum class Kind : unsigned char { words, letter, integer, natural, real };
  Kind kind_ = Kind::words;
  std::string_view words_{};
  union {
    long long integer_ = 0;
    unsigned long long natural_;
    double real_;
  };
};

[[gnu::cold]] std::string join(std::initializer_list<Piece> pieces);

}  // namespace detail

/// Joins strings and numbers to one string, for messages and not for code that runs in every step. The types of the parts are erased and
/// the function is cold. So code with many messages compiles fast, and code that throws lies apart from the hot path.
template <class... Parts>
[[gnu::cold]] std::string text(const Parts&... parts) {
  return detail::join({detail::Piece{parts}...});
}

/// Returns `words` with escapes (\r, \x1b) in place of bytes that must not reach a terminal: control characters except newlines and tabs,
/// and bytes that are not valid UTF-8.
[[gnu::cold]] std::string printable(std::string_view words);

/// Quotes text from outside the program (an environment variable, a command line, a file, another process) on one line, for a message:
/// '4\r'. Shows only the first 200 bytes of longer text.
[[gnu::cold]] std::string in_quotes(std::string_view words);

/// The base class of pdp's exceptions. Each message says what was expected, what was found, and what to do about it. Control characters in
/// a message are escaped (see printable), since it may contain text from outside the program.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  ~Error() override;
};

/// Sizes that do not fit together: of layers, of batches, of buffers.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message);
  ~ShapeError() override;
};

/// A setting that cannot work: an empty world, an empty training set.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message);
  ~ConfigError() override;
};

/// A command line or an environment that is invalid or contradicts itself. Programs end with exit code 2 on it.
class UsageError : public ConfigError {
 public:
  explicit UsageError(const std::string& message);
  ~UsageError() override;
};

/// A device such as a GPU, or its driver, reports an error: it is out of memory, or work given to it has failed.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message);
  ~DeviceError() override;
};

/// A file that is missing, cannot be written, or does not hold what it should.
class FileError : public Error {
 public:
  explicit FileError(const std::string& message);
  ~FileError() override;
};

/// A file that does not match the checksum stored with it.
class ChecksumError : public FileError {
 public:
  explicit ChecksumError(const std::string& message);
  ~ChecksumError() override;
};

/// A plan that cannot run: a message without its receive, a cycle of waits, a gradient used before it is computed.
class PlanError : public Error {
 public:
  explicit PlanError(const std::string& message);
  ~PlanError() override;
};

/// A gradient that holds NaN or infinity. Every rank throws it, in the same step, before any parameter is changed.
class NonFiniteGradient : public Error {
 public:
  explicit NonFiniteGradient(const std::string& message);
  ~NonFiniteGradient() override;
};

/// A loss that is NaN or infinity, or parameters of which that is found before a checkpoint. Every rank throws it, after the same step and
/// its update.
class NonFiniteLoss : public Error {
 public:
  explicit NonFiniteLoss(const std::string& message);
  ~NonFiniteLoss() override;
};

/// A training that has stopped because it was asked to. Every rank throws it, after the same step. launch::run ends the program with
/// exit_code: start it again to continue.
class Stopped : public Error {
 public:
  static constexpr int exit_code = 75;  // EX_TEMPFAIL of sysexits.h

  explicit Stopped(const std::string& message);
  ~Stopped() override;
};

/// Ranks that should hold equal parameters hold different ones.
class ParametersDiffer : public Error {
 public:
  explicit ParametersDiffer(const std::string& message);
  ~ParametersDiffer() override;
};

/// A failure of the communication between ranks. A communicator that has thrown one of these stays aborted.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message);
  ~CommunicationError() override;
};

/// A rank has been lost. Every surviving rank throws it.
class PeerLost : public CommunicationError {
 public:
  PeerLost(int rank, const std::string& message);
  ~PeerLost() override;
  /// Returns the world rank of the lost rank.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A deadline has passed.
class Timeout : public CommunicationError {
 public:
  explicit Timeout(const std::string& message);
  ~Timeout() override;
};

/// Ranks of one group have made different calls. The message shows both.
class MismatchedCollective : public CommunicationError {
 public:
  explicit MismatchedCollective(const std::string& message);
  ~MismatchedCollective() override;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/core/source/error.hpp>
#endif
