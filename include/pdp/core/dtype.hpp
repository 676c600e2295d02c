#pragma once

#include <cstddef>
#include <cstdint>

namespace pdp {

/// Element types that travel between ranks and lie in files. The values are part of the wire format.
enum class DType : std::uint8_t { byte = 0, int32 = 1, int64 = 2, float32 = 3, float64 = 4 };

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
}  // namespace detail

/// A type that pdp can send, reduce and store.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::value;
};

template <Element T>
constexpr DType dtype_of = detail::DTypeOf<T>::value;

static_assert(Element<float> && Element<std::byte> && !Element<char> && !Element<const float>);

}  // namespace pdp
