#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/core/cast.hpp>

namespace pdp::data {

/// Element types of a safetensors file, named as in that format. `unknown` stands for every name that is not in this list.
enum class ElementType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  BOOL,
  C64,
  F8_E4M3,
  F8_E5M2,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  F6_E2M3,
  F6_E3M2,
  F4,
  unknown
};

/// The name of an element type in a file, and its size.
struct ElementTypeInfo {
  std::string_view name;
  std::size_t bits;  // per element; 0 if unknown
};

/// Indexed by ElementType.
inline constexpr std::array<ElementTypeInfo, 23> element_types{
    {{"F64", 64},    {"F32", 32},        {"F16", 16},        {"BF16", 16},   {"I64", 64},    {"I32", 32}, {"I16", 16},    {"I8", 8},
     {"U64", 64},    {"U32", 32},        {"U16", 16},        {"U8", 8},      {"BOOL", 8},    {"C64", 64}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},   {"unknown", 0}}};

/// Returns the name and the size of an element type.
constexpr const ElementTypeInfo& info(ElementType type) { return element_types[as_size(type)]; }

/// Returns the type with this name, or ElementType::unknown if there is none.
constexpr ElementType element_type(std::string_view name) {
  for (std::size_t i = 0; i < element_types.size(); ++i)
    if (element_types[i].name == name) return static_cast<ElementType>(i);
  return ElementType::unknown;
}

/// The bits of a half-precision number (IEEE 754 binary16), for storage only: it has no arithmetic.
struct Float16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(Float16, Float16) = default;
};

/// The bits of a bfloat16, which are the upper half of a float. For storage only.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(BFloat16, BFloat16) = default;
};

/// The element type that corresponds to a C++ type; nullopt if there is none.
template <class T>
inline constexpr std::optional<ElementType> element_type_of = std::nullopt;
template <>
inline constexpr std::optional element_type_of<double> = ElementType::F64;
template <>
inline constexpr std::optional element_type_of<float> = ElementType::F32;
template <>
inline constexpr std::optional element_type_of<Float16> = ElementType::F16;
template <>
inline constexpr std::optional element_type_of<BFloat16> = ElementType::BF16;
template <>
inline constexpr std::optional element_type_of<std::int64_t> = ElementType::I64;
template <>
inline constexpr std::optional element_type_of<std::int32_t> = ElementType::I32;
template <>
inline constexpr std::optional element_type_of<std::int16_t> = ElementType::I16;
template <>
inline constexpr std::optional element_type_of<std::int8_t> = ElementType::I8;
template <>
inline constexpr std::optional element_type_of<std::uint64_t> = ElementType::U64;
template <>
inline constexpr std::optional element_type_of<std::uint32_t> = ElementType::U32;
template <>
inline constexpr std::optional element_type_of<std::uint16_t> = ElementType::U16;
template <>
inline constexpr std::optional element_type_of<std::uint8_t> = ElementType::U8;
template <>
inline constexpr std::optional element_type_of<bool> = ElementType::BOOL;

/// A C++ type that corresponds to an ElementType of the same size.
template <class T>
concept Element = element_type_of<T>
.has_value() && 8 * sizeof(T) == info(*element_type_of<T>).bits;

static_assert(Element<float> && Element<Float16> && Element<bool> && !Element<char32_t>);

}  // namespace pdp::data
