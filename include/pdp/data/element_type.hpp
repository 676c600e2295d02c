#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pdp::data {

/// Element types of a file, with the names that safetensors gives them.
enum class ElementType : std::uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL };

struct ElementTypeInfo {
  std::string_view name;
  std::size_t bytes;  // of one element
};

inline constexpr std::array<ElementTypeInfo, 10> element_types{
    {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U8", 1}, {"BOOL", 1}}};

constexpr const ElementTypeInfo& info(ElementType type) { return element_types[static_cast<std::size_t>(type)]; }

constexpr std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t i = 0; i < element_types.size(); ++i)
    if (element_types[i].name == name) return static_cast<ElementType>(i);
  return std::nullopt;
}

/// The bits of a half-precision number (IEEE 754 binary16), to be moved and not to be calculated with.
struct Float16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(Float16, Float16) = default;
};

/// The bits of the upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(BFloat16, BFloat16) = default;
};

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
inline constexpr std::optional element_type_of<std::uint8_t> = ElementType::U8;
template <>
inline constexpr std::optional element_type_of<bool> = ElementType::BOOL;

/// A C++ type with an element type of its own.
template <class T>
concept Element = element_type_of<T>
.has_value() && sizeof(T) == info(*element_type_of<T>).bytes;

static_assert(Element<float> && Element<Float16> && Element<bool> && !Element<char32_t>);

}  // namespace pdp::data
