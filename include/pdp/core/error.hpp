#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace pdp {

namespace detail {

/// A part of a message: words, or a number. It borrows its words.
class Piece {
 public:
  Piece(const char* words) : words_{words} {}
  Piece(std::string_view words) : words_{words} {}
  Piece(const std::string& words) : words_{words} {}
  Piece(char letter) : kind_{Kind::letter}, integer_{letter} {}
  Piece(bool yes) : words_{yes ? "true" : "false"} {}
  Piece(std::signed_integral auto number) : kind_{Kind::integer}, integer_{number} {}
  Piece(std::unsigned_integral auto number) : kind_{Kind::natural}, natural_{number} {}
  Piece(std::floating_point auto number) : kind_{Kind::real}, real_{static_cast<double>(number)} {}

  void append_to(std::string& joined) const {
    switch (kind_) {
      case Kind::words:
        joined += words_;
        break;
      case Kind::letter:
        joined += static_cast<char>(integer_);
        break;
      case Kind::integer:
        joined += std::to_string(integer_);
        break;
      case Kind::natural:
        joined += std::to_string(natural_);
        break;
      case Kind::real:
        joined += shortest(real_);
        break;
    }
  }

 private:
  /// The fewest digits that give the number again, with a dot whatever the program's locale is.
  static std::string shortest(double number) {
    char digits[32];
    const double magnitude = number < 0 ? -number : number;
    const bool is_plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e15);
    const auto [end, error] = is_plain ? std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed)
                                       : std::to_chars(digits, digits + sizeof digits, number);
    return {digits, error == std::errc{} ? end : digits};
  }

  enum class Kind : unsigned char { words, letter, integer, natural, real };
  Kind kind_ = Kind::words;
  std::string_view words_{};
  union {
    long long integer_ = 0;
    unsigned long long natural_;
    double real_;
  };
};

[[gnu::cold]] inline std::string join(std::initializer_list<Piece> pieces) {
  std::string joined;
  for (const Piece& piece : pieces) piece.append_to(joined);
  return joined;
}

}  // namespace detail

/// Joins words and numbers to one string. For messages, not for a step: the parts are erased and the compiler is told that it is cold, so
/// that code around many messages compiles fast, and the code that throws one lies apart from the code that does not.
template <class... Parts>
[[gnu::cold]] std::string text(const Parts&... parts) {
  return detail::join({detail::Piece{parts}...});
}

namespace detail {

/// The length of the UTF-8 character at the start of `words` if a terminal may show it as it is, else 0: of control characters (of ASCII,
/// and U+0080 to U+009F), and of bytes that are no UTF-8.
[[gnu::cold]] inline std::size_t printable_length(std::string_view words) {
  const auto byte = [words](std::size_t i) -> unsigned { return i < words.size() ? static_cast<unsigned char>(words[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(1);
  const bool bad = (first == 0xc2 && second < 0xa0) || (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return bad ? 0 : length;
}

[[gnu::cold]] inline std::string escaped(std::string_view words, std::string_view kept) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  while (!words.empty()) {
    const char letter = words.front();
    std::size_t length = kept.find(letter) != std::string_view::npos ? 1 : printable_length(words);
    if (length > 0) {
      shown += words.substr(0, length);
    } else {
      length = 1;
      const auto byte = static_cast<unsigned char>(letter);
      if (const char* name = letter == '\n' ? "\\n" : letter == '\r' ? "\\r" : letter == '\t' ? "\\t" : nullptr)
        shown += name;
      else
        shown.append({'\\', 'x', digits[byte / 16], digits[byte % 16]});
    }
    words.remove_prefix(length);
  }
  return shown;
}

}  // namespace detail

/// Returns `words` with escapes (\r, \x1b) in place of what must not reach a terminal: control characters except ends of lines and tabs,
/// and bytes that are no UTF-8.
[[gnu::cold]] inline std::string printable(std::string_view words) { return detail::escaped(words, "\n\t"); }

/// Returns words from outside (of an environment variable, a command line, a file, another process) in quotes and on one line, for a
/// message: '4\r'. Of more than 200 bytes only the first are shown.
[[gnu::cold]] inline std::string in_quotes(std::string_view words) {
  constexpr std::size_t longest = 200;
  return text('\'', detail::escaped(words.substr(0, longest), {}), words.size() > longest ? "'..." : "'");
}

/// What pdp throws. Each message says what was expected, what was found, and what to do about it. Control characters in a message are
/// shown escaped (see printable), since it may contain words from outside.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error{printable(message)} {}
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

/// What a device, such as a GPU, or its driver refuses: it is out of memory, or something that it was given has failed.
class DeviceError : public Error {
 public:
  using Error::Error;
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

/// A gradient that holds NaN or infinity. Every rank throws it, in the same step, before any parameter is changed.
class NonFiniteGradient : public Error {
 public:
  using Error::Error;
};

/// Ranks that should hold the same parameters do not.
class ParametersDiffer : public Error {
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
