#pragma once

/// Definitions for pdp/core/error.hpp; see pdp/core/separate_compilation.hpp.

#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp {

namespace detail {

PDP_INLINE Piece::Piece(const char* words) noexcept : words_{words} {}
PDP_INLINE Piece::Piece(std::string_view words) noexcept : words_{words} {}
PDP_INLINE Piece::Piece(const std::string& words) noexcept : words_{words} {}
PDP_INLINE Piece::Piece(char letter) noexcept : kind_{Kind::letter}, integer_{letter} {}
PDP_INLINE Piece::Piece(bool yes) noexcept : words_{yes ? "true" : "false"} {}
PDP_INLINE Piece::Piece(int number) noexcept : kind_{Kind::integer}, integer_{number} {}
PDP_INLINE Piece::Piece(long number) noexcept : kind_{Kind::integer}, integer_{number} {}
PDP_INLINE Piece::Piece(long long number) noexcept : kind_{Kind::integer}, integer_{number} {}
PDP_INLINE Piece::Piece(unsigned number) noexcept : kind_{Kind::natural}, natural_{number} {}
PDP_INLINE Piece::Piece(unsigned long number) noexcept : kind_{Kind::natural}, natural_{number} {}
PDP_INLINE Piece::Piece(unsigned long long number) noexcept : kind_{Kind::natural}, natural_{number} {}
PDP_INLINE Piece::Piece(double number) noexcept : kind_{Kind::real}, real_{number} {}
PDP_INLINE Piece::Piece(long double number) noexcept : kind_{Kind::real}, real_{static_cast<double>(number)} {}

/// Returns the fewest digits that reproduce the number, with a decimal point in every locale.
[[gnu::cold]] PDP_INLINE std::string shortest(double number) {
  char digits[32];
  const double magnitude = number < 0 ? -number : number;
  const bool is_plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e15);
  const auto [end, error] = is_plain ? std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed)
                                     : std::to_chars(digits, digits + sizeof digits, number);
  return {digits, error == std::errc{} ? end : digits};
}

PDP_INLINE void Piece::append_to(std::string& joined) const {
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

PDP_INLINE std::string join(std::initializer_list<Piece> pieces) {
  std::string joined;
  for (const Piece& piece : pieces) piece.append_to(joined);
  return joined;
}

/// Returns the length of the UTF-8 character at the start of `words`. Returns 0 for a control character (ASCII, U+0080 to U+009F) or bytes
/// that are not valid UTF-8, which a terminal must not receive.
[[gnu::cold]] PDP_INLINE std::size_t printable_length(std::string_view words) {
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

[[gnu::cold]] PDP_INLINE std::string escaped(std::string_view words, std::string_view kept) {
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

PDP_INLINE std::string printable(std::string_view words) { return detail::escaped(words, "\n\t"); }

PDP_INLINE std::string in_quotes(std::string_view words) {
  constexpr std::size_t longest = 200;
  return text('\'', detail::escaped(words.substr(0, longest), {}), words.size() > longest ? "'..." : "'");
}

PDP_INLINE Error::Error(const std::string& message) : std::runtime_error{printable(message)} {}
PDP_INLINE Error::~Error() = default;
PDP_INLINE ShapeError::ShapeError(const std::string& message) : Error{message} {}
PDP_INLINE ShapeError::~ShapeError() = default;
PDP_INLINE ConfigError::ConfigError(const std::string& message) : Error{message} {}
PDP_INLINE ConfigError::~ConfigError() = default;
PDP_INLINE UsageError::UsageError(const std::string& message) : ConfigError{message} {}
PDP_INLINE UsageError::~UsageError() = default;
PDP_INLINE DeviceError::DeviceError(const std::string& message) : Error{message} {}
PDP_INLINE DeviceError::~DeviceError() = default;
PDP_INLINE FileError::FileError(const std::string& message) : Error{message} {}
PDP_INLINE FileError::~FileError() = default;
PDP_INLINE ChecksumError::ChecksumError(const std::string& message) : FileError{message} {}
PDP_INLINE ChecksumError::~ChecksumError() = default;
PDP_INLINE PlanError::PlanError(const std::string& message) : Error{message} {}
PDP_INLINE PlanError::~PlanError() = default;
PDP_INLINE NonFiniteGradient::NonFiniteGradient(const std::string& message) : Error{message} {}
PDP_INLINE NonFiniteGradient::~NonFiniteGradient() = default;
PDP_INLINE NonFiniteLoss::NonFiniteLoss(const std::string& message) : Error{message} {}
PDP_INLINE NonFiniteLoss::~NonFiniteLoss() = default;
PDP_INLINE Stopped::Stopped(const std::string& message) : Error{message} {}
PDP_INLINE Stopped::~Stopped() = default;
PDP_INLINE ParametersDiffer::ParametersDiffer(const std::string& message) : Error{message} {}
PDP_INLINE ParametersDiffer::~ParametersDiffer() = default;
PDP_INLINE CommunicationError::CommunicationError(const std::string& message) : Error{message} {}
PDP_INLINE CommunicationError::~CommunicationError() = default;
PDP_INLINE PeerLost::PeerLost(int rank, const std::string& message) : CommunicationError{message}, rank_{rank} {}
PDP_INLINE PeerLost::~PeerLost() = default;
PDP_INLINE Timeout::Timeout(const std::string& message) : CommunicationError{message} {}
PDP_INLINE Timeout::~Timeout() = default;
PDP_INLINE MismatchedCollective::MismatchedCollective(const std::string& message) : CommunicationError{message} {}
PDP_INLINE MismatchedCollective::~MismatchedCollective() = default;

}  // namespace pdp
