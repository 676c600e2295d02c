#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

namespace detail {

/// Returns a text that names a type. It is equal on all ranks, which run the same program.
template <class T>
consteval const char* signature() {  // a std::string_view would occur in the text itself
  return __PRETTY_FUNCTION__;
}

}  // namespace detail

/// The type of a value, as far as a rank without types of the program knows it.
struct ValueType {
  void (*write)(Writer& writer, const void* value) = nullptr;  // null if values of this type cannot travel
};
template <class T>
inline constexpr ValueType value_type{[] {
  void (*write)(Writer&, const void*) = nullptr;
  if constexpr (Travels<T>) write = [](Writer& writer, const void* value) { Codec<T>::write(writer, *static_cast<const T*>(value)); };
  return write;
}()};

struct PromiseState;

/// A value of any type: an object, or the result of a call. Empty for the result of a function that returns nothing.
struct Value {
  std::shared_ptr<void> data{};
  const ValueType* type = nullptr;
  std::shared_ptr<PromiseState> later{};  // the value that the function gives later; the others are empty then

  template <class T>
  static Value of(std::shared_ptr<T> data) {
    return {std::move(data), &value_type<T>, nullptr};
  }
};

}  // namespace pdp::rpc
