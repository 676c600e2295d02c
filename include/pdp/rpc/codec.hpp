#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/dtype.hpp>
#include <pdp/rpc/wire/fields.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

/// How values of a type travel to another rank: write(writer, value) and read(reader, value), which fills a default-constructed value.
/// Specialise it for a type that is neither an aggregate nor has a member travel(visit).
template <class T>
struct Codec;

/// A type whose values can travel to another rank:
///
/// - numbers, enumerations, std::string, std::optional, std::pair, std::tuple, std::array and std::vector of such types;
/// - aggregates of up to 12 members of such types, which are no C arrays;
/// - classes with a member template `void travel(auto&& visit)` that calls visit(members...);
/// - references to remote objects (Remote);
/// - types with a specialisation of Codec.
template <class T>
concept Travels = std::default_initializable<T> && requires(Writer& writer, Reader& reader, const T& value, T& into) {
  Codec<T>::write(writer, value);
  Codec<T>::read(reader, into);
};

namespace detail {

/// A type whose arrays travel as bytes.
template <class T>
concept Plain =
    (std::is_arithmetic_v<T> && !std::same_as<T, bool>) || std::is_enum_v<T> || std::same_as<T, Float16> || std::same_as<T, BFloat16>;

/// A class that names its members: `void travel(auto&& visit) { visit(a_, b_); }`.
template <class T>
concept NamesMembers = requires(T& value) {
  value.travel([](auto&...) {});
};

template <class T>
concept TravellingAggregate = std::is_aggregate_v<T> && std::is_class_v<T> && !NamesMembers<T> &&
                              (std::is_empty_v<T> || (field_count<T>() >= 1 && field_count<T>() <= most_fields));

template <class... T>
void write_all(Writer& writer, const T&... values) {
  (Codec<std::remove_cv_t<T>>::write(writer, values), ...);
}
template <class... T>
void read_all(Reader& reader, T&... values) {
  (Codec<T>::read(reader, values), ...);
}

template <class T>
void write_sequence(Writer& writer, std::span<const T> values) {
  if constexpr (Plain<T>)
    writer.array(std::as_bytes(values));
  else
    for (const T& value : values) Codec<T>::write(writer, value);
}
template <class T>
void read_sequence(Reader& reader, std::span<T> values) {
  if constexpr (Plain<T>)
    reader.array(std::as_writable_bytes(values));
  else
    for (T& value : values) Codec<T>::read(reader, value);
}

}  // namespace detail

template <class T>
requires detail::Plain<T> || std::same_as<T, bool>
struct Codec<T> {
  static void write(Writer& writer, T value) { writer.put(value); }
  static void read(Reader& reader, T& into) {
    if constexpr (std::same_as<T, bool>)
      into = reader.flag();
    else
      into = reader.get<T>();
  }
};

template <>
struct Codec<std::string> {
  static void write(Writer& writer, const std::string& value) {
    writer.put(std::uint64_t{value.size()});
    writer.array(std::as_bytes(std::span{value}));
  }
  static void read(Reader& reader, std::string& into) {
    into.resize(reader.array_count(1));
    reader.array(std::as_writable_bytes(std::span{into}));
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static void write(Writer& writer, const std::vector<T>& value) requires Travels<T> {
    writer.put(std::uint64_t{value.size()});
    if constexpr (std::same_as<T, bool>)
      for (const bool each : value) writer.put(each);
    else
      detail::write_sequence(writer, std::span<const T>{value});
  }
  static void read(Reader& reader, std::vector<T>& into) requires Travels<T> {
    if constexpr (detail::Plain<T>)
      into.resize(reader.array_count(sizeof(T)));
    else
      into.resize(reader.count());
    if constexpr (std::same_as<T, bool>)
      for (auto each : into) each = reader.flag();
    else
      detail::read_sequence(reader, std::span<T>{into});
  }
};

/// Only written: it arrives as a vector.
template <class T>
struct Codec<std::span<T>> {
  static void write(Writer& writer, std::span<const T> value) requires Travels<std::remove_const_t<T>> {
    writer.put(std::uint64_t{value.size()});
    detail::write_sequence<std::remove_const_t<T>>(writer, value);
  }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static void write(Writer& writer, const std::array<T, N>& value) requires Travels<T> {
    detail::write_sequence(writer, std::span<const T>{value});
  }
  static void read(Reader& reader, std::array<T, N>& into) requires Travels<T> { detail::read_sequence(reader, std::span<T>{into}); }
};

template <class T>
struct Codec<std::optional<T>> {
  static void write(Writer& writer, const std::optional<T>& value) requires Travels<T> {
    writer.put(value.has_value());
    if (value) Codec<T>::write(writer, *value);
  }
  static void read(Reader& reader, std::optional<T>& into) requires Travels<T> {
    into.reset();
    if (reader.flag()) Codec<T>::read(reader, into.emplace());
  }
};

template <class A, class B>
struct Codec<std::pair<A, B>> {
  static void write(Writer& writer, const std::pair<A, B>& value) requires Travels<A> && Travels<B> {
    detail::write_all(writer, value.first, value.second);
  }
  static void read(Reader& reader, std::pair<A, B>& into) requires Travels<A> && Travels<B> {
    detail::read_all(reader, into.first, into.second);
  }
};

template <class... T>
struct Codec<std::tuple<T...>> {
  static void write(Writer& writer, const std::tuple<T...>& value) requires(Travels<T>&&...) {
    std::apply([&](const T&... each) { detail::write_all(writer, each...); }, value);
  }
  static void read(Reader& reader, std::tuple<T...>& into) requires(Travels<T>&&...) {
    std::apply([&](T&... each) { detail::read_all(reader, each...); }, into);
  }
};

template <class T>
requires detail::NamesMembers<T>
struct Codec<T> {
  static void write(Writer& writer, const T& value) {
    const_cast<T&>(value).travel([&](const auto&... members) { detail::write_all(writer, members...); });
  }
  static void read(Reader& reader, T& into) {
    into.travel([&](auto&... members) { detail::read_all(reader, members...); });
  }
};

template <class T>
requires detail::TravellingAggregate<T>
struct Codec<T> {
  using Fields = decltype(detail::fields(std::declval<T&>()));
  static constexpr bool all_travel = []<class... F>(std::type_identity<std::tuple<F&...>>) {
    return (Travels<F> && ...);
  }(std::type_identity<Fields>{});

  static void write(Writer& writer, const T& value) requires all_travel {
    std::apply([&](const auto&... members) { detail::write_all(writer, members...); }, detail::fields(value));
  }
  static void read(Reader& reader, T& into) requires all_travel {
    std::apply([&](auto&... members) { detail::read_all(reader, members...); }, detail::fields(into));
  }
};

static_assert(Travels<std::vector<std::pair<std::string, std::optional<float>>>> && Travels<std::array<std::vector<int>, 3>>);
static_assert(!Travels<int*> && !Travels<std::vector<float*>> && !Travels<std::span<const float>>);

}  // namespace pdp::rpc
