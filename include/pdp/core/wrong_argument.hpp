#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <pdp/core/cast.hpp>

/// Finds out why a function of a user's type cannot be called, for the message of a static_assert.
namespace pdp::detail {

template <class... T>
struct Types {};

/// Converts to every type. Stands for an argument of unknown type.
struct Anything {
  template <class T>
  operator T() const;
};

template <class Call, std::size_t number, class Replacement, class... Arguments, std::size_t... at>
constexpr bool takes(Types<Arguments...>, std::index_sequence<at...>) {
  return std::is_invocable_v<Call, std::conditional_t<at == number, Replacement, Arguments>...>;
}
template <class Call, std::size_t number, class Arguments, std::size_t... at, class... Replacements>
constexpr bool takes_one_of(Arguments arguments, std::index_sequence<at...> all, Types<Replacements...>) {
  return (takes<Call, number, Anything>(arguments, all) || ... || takes<Call, number, Replacements>(arguments, all));
}

/// Returns the number, from 1, of the argument for which the function requires another type than the one given. Returns 0 if the call
/// compiles, and -1 for any other fault: the function is missing or not const, takes more or fewer arguments, or two arguments are wrong.
/// `Call` makes the call. `Replacements` are other types to try for the argument, for functions that are templates.
template <class Call, class... Arguments, class... Replacements>
constexpr int wrong_argument(Types<Arguments...> arguments, Types<Replacements...> replacements) {
  if (std::is_invocable_v<Call, Arguments...>) return 0;
  int wrong = -1;
  [&]<std::size_t... at>(std::index_sequence<at...> all) {
    static_cast<void>(((takes_one_of<Call, at>(arguments, all, replacements) && (wrong = as_int(at) + 1)) || ...));
  }
  (std::index_sequence_for<Arguments...>{});
  return wrong;
}

}  // namespace pdp::detail
