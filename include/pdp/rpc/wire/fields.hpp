#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <pdp/core/requirements.hpp>

namespace pdp::rpc::detail {

/// Converts to anything, to count the members of an aggregate. It is used in unevaluated expressions only.
struct Anything {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... Index>
consteval bool takes(std::index_sequence<Index...>) {
  return requires { T{(static_cast<void>(Index), Anything{})...}; };
}
inline constexpr std::size_t most_fields = 12;

/// Returns the number of members of an aggregate, or most_fields + 1 if there are more.
template <class T, std::size_t N = most_fields + 1>
consteval std::size_t field_count() {
  if constexpr (N == 0)
    return 0;
  else if constexpr (takes<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return field_count<T, N - 1>();
}

/// Returns references to the members of an aggregate of up to most_fields members.
template <class T>
constexpr auto fields(T& value) {
  constexpr std::size_t count = std::is_empty_v<T> ? 0 : field_count<std::remove_cv_t<T>>();
  static_assert(count <= most_fields);
  if constexpr (count == 0) {
    return std::tuple<>{};
  } else if constexpr (count == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

}  // namespace pdp::rpc::detail
