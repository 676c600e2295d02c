#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

/// How an argument of a call is encoded.
enum class Passed : std::uint8_t {
  value,       // the value follows
  other_slot,  // the number and the owner of a slot follow; its value arrives in a message of its own
  own_slot,    // the number and the owner of a slot follow; it is a slot of the rank that runs the call
};

/// The result that a call needs or waits for, and the rank that owns it.
struct Awaited {
  SlotId slot{};
  int owner = -1;
};

/// Binds an argument to a slot. `read` decodes the value that arrives. `*local` becomes the slot's value if the slot is on this rank.
using Bind =
    std::function<void(Awaited from, Passed passed, std::function<void(Reader&)> read, std::shared_ptr<std::shared_ptr<void>> local)>;

/// A function that can be called remotely: a member function, a free function or a constructor. All ranks run the same program, so an entry
/// that one rank uses exists on all ranks under the same identifier. No code and no pointers travel.
struct Method {
  std::uint64_t id = 0;   // a hash of the signature
  std::string_view name;  // for messages: "Encoder::forward"
  std::string_view signature;
  std::shared_ptr<void> (*read)(Reader& reader, const Bind& bind) = nullptr;  // decodes the arguments
  Value (*run)(void* arguments, void* object) = nullptr;

  /// Adds an entry to the table of the program. Used before main, by the initialisation of a static variable.
  static bool add(const Method& method);
  /// Returns the entry with this identifier. Throws Error if there is none.
  static const Method& find(std::uint64_t id);
  /// Throws Error if two functions of the program have the same identifier.
  static void check_table();
};

namespace detail {

template <auto F>
consteval const char* function_signature() {
  return __PRETTY_FUNCTION__;
}
/// Returns the name in a text that a compiler gives for a template argument: "Encoder::forward" in [with auto F = &Encoder::forward].
std::string_view name_in(std::string_view signature);
/// Returns the name with long lists of template arguments replaced: "SubNetwork<...>::forward".
std::string shortened(std::string_view name);
/// Return the name of a function, and of a type, for messages.
template <auto F>
std::string_view function_name() {
  static const std::string name = shortened(name_in(function_signature<F>()));
  return name;
}
template <class T>
std::string_view type_name() {
  static const std::string name = shortened(name_in(signature<T>()));
  return name;
}

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace detail

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/call/source/method.hpp>
#endif
