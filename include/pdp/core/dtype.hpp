#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pdp/core/finite.hpp>

namespace pdp {

/// IEEE 754 binary16. Compilers compute with it in float and round once for each operation.
using Float16 = _Float16;

/// The upper half of a float: the range of float with 8 bits of precision. Arithmetic is done in float. Conversion from float rounds to
/// nearest, ties to even.
class BFloat16 {
 public:
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) {
    const std::uint32_t bits = bits_of(value);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could turn a NaN into an infinity
    bits_ = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }
  constexpr explicit BFloat16(std::integral auto value) : BFloat16{static_cast<float>(value)} {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16); }

 private:
  std::uint16_t bits_ = 0;
};
static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);

/// The type in which sums of many values are kept: float for 16-bit types, otherwise T.
template <class T>
using Accumulated = std::conditional_t<sizeof(T) == 2, float, T>;

/// Element types of messages between ranks and of files. The values are part of the wire format.
enum class DType : std::uint8_t { byte = 0, int32 = 1, int64 = 2, float32 = 3, float64 = 4, int8 = 5, float16 = 6, bfloat16 = 7 };

/// Returns the name of an element type, such as "float32".
constexpr const char* name(DType type) {
  switch (type) {
    case DType::byte:
      return "byte";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::int8:
      return "int8";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
  }
  return "an unknown type";
}

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<std::byte> {
  static constexpr DType value = DType::byte;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bfloat16;
};
}  // namespace detail

/// A type that pdp can send, reduce and store.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::value;
};

/// The DType of a C++ type.
template <Element T>
constexpr DType dtype_of = detail::DTypeOf<T>::value;

static_assert(Element<float> && Element<std::byte> && !Element<char> && !Element<const float>);

}  // namespace pdp
