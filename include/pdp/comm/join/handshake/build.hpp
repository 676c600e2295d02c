#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <pdp/comm/message/algorithm/table.hpp>
#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/version.hpp>

namespace pdp::comm::handshake {

namespace detail {

/// Returns a digest of the element types that messages can carry, by number and name.
constexpr std::uint64_t digest_of_element_types() {
  std::uint64_t digest = 0;
  for (unsigned type = 0; type <= static_cast<unsigned>(DType::bfloat16); ++type)
    digest = random::mix(digest ^ random::hash(std::string_view{name(static_cast<DType>(type))}) ^ type);
  return digest;
}

}  // namespace detail

/// The properties that must be equal on two ranks for them to communicate. Its position in the messages of the handshake never changes.
struct Build {
  static constexpr std::uint32_t this_protocol = 5;  // version of all that follows the handshake: with the store, and between ranks
  static constexpr std::uint32_t this_byte_order = 0x01020304;

  std::array<char, 16> version{};
  std::uint32_t protocol = this_protocol;
  std::uint32_t byte_order = this_byte_order;
  std::uint32_t address_bytes = sizeof(void*);
  std::uint32_t frame_bytes = sizeof(stream::Frame);
  std::uint64_t element_types = detail::digest_of_element_types();
  std::uint64_t choices = algorithm::digest_of_choices();  // digest of the choices of algorithms

  /// Returns the build of this program.
  static constexpr Build here() {
    Build build;
    static_assert(sizeof pdp::version <= sizeof build.version);
    std::ranges::copy(pdp::version, build.version.begin());
    return build;
  }

  friend constexpr bool operator==(const Build&, const Build&) = default;
};
static_assert(sizeof(Build) == 48 && std::has_unique_object_representations_v<Build>);

/// Describes a build: "pdp 0.1.0 (protocol 5, addresses of 8 bytes, headers of 64 bytes)". A build may come from an unauthenticated peer,
/// so characters that cannot be printed are replaced by question marks.
inline std::string describe(const Build& build) {
  std::string version;
  for (const char letter : build.version)
    if (letter != '\0') version += letter > ' ' && letter < '\x7f' ? letter : '?';
  std::string words = text("pdp ", version.empty() ? "of an unknown version" : version, " (protocol ", build.protocol, ", addresses of ",
                           build.address_bytes, " bytes, headers of ", build.frame_bytes, " bytes");
  if (build.byte_order != Build::this_byte_order) words += ", another byte order";
  if (build.element_types != Build{}.element_types) words += ", other element types";
  if (build.choices != Build{}.choices) words += ", other choices of algorithms";
  return words + ")";
}

}  // namespace pdp::comm::handshake
