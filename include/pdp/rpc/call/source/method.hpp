#pragma once

/// Definitions for pdp/rpc/call/method.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/method.hpp>

namespace pdp::rpc {

namespace detail {

struct MethodTable {
  std::unordered_map<std::uint64_t, Method> methods;
  std::optional<std::pair<std::string_view, std::string_view>> collision;
};
/// The functions of the program that can be called remotely. It is filled before main and only read afterwards.
PDP_INLINE MethodTable& method_table() {
  static MethodTable table;
  return table;
}

PDP_INLINE std::string_view name_in(std::string_view signature) {
  const std::size_t begin = signature.find(" = ");
  if (begin == std::string_view::npos) return signature;
  std::string_view name = signature.substr(begin + 3);
  name = name.substr(0, name.find_last_of(']'));
  if (name.starts_with('&')) name.remove_prefix(1);
  return name;
}

}  // namespace detail

namespace detail {

PDP_INLINE std::string shortened(std::string_view name) {
  constexpr std::size_t long_list = 40;  // letters
  std::string result;
  int depth = 0;
  std::size_t begin = 0;  // of the outermost list
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' && depth++ == 0) begin = i;
    const bool ends = name[i] == '>' && depth > 0 && --depth == 0;
    if (ends && i - begin > long_list)
      result += "<...>";
    else if (ends)
      result += name.substr(begin, i - begin + 1);
    else if (depth == 0)
      result += name[i];
  }
  return depth == 0 ? result : std::string{name};
}

}  // namespace detail

PDP_INLINE bool Method::add(const Method& method) {
  auto& table = detail::method_table();
  const auto [found, added] = table.methods.emplace(method.id, method);
  if (!added && (found->second.signature != method.signature || found->second.run != method.run))
    table.collision.emplace(found->second.signature, method.signature);
  return true;
}

PDP_INLINE const Method& Method::find(std::uint64_t id) {
  const auto& methods = detail::method_table().methods;
  const auto found = methods.find(id);
  if (found == methods.end())
    throw Error{"another rank calls a function that this program does not have; all ranks must run the same program"};
  return found->second;
}

PDP_INLINE void Method::check_table() {
  if (const auto& collision = detail::method_table().collision) {
    throw Error{text(
        "two functions that are called remotely have the same identifier; rename one of them, also if they are in anonymous namespaces "
        "of different sources: ",
        in_quotes(collision->first), " and ", in_quotes(collision->second))};
  }
}

}  // namespace pdp::rpc
