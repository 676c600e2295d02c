#pragma once

/// Definitions for pdp/rpc/call/fault.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/core/label.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/error.hpp>

namespace pdp::rpc {

namespace detail {

/// A std::bad_alloc of another rank, with a message.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_{std::move(message)} {}
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// The types that arrive as themselves. A type stands before its base classes.
using FaultTypes =
    std::tuple<RemoteError, EmptyReference, ChecksumError, FileError, UsageError, ConfigError, ShapeError, DeviceError, PlanError,
               NonFiniteGradient, NonFiniteLoss, ParametersDiffer, Timeout, MismatchedCollective, CommunicationError, Error,
               std::invalid_argument, std::domain_error, std::length_error, std::out_of_range, std::logic_error, std::range_error,
               std::overflow_error, std::underflow_error, std::runtime_error, OutOfMemory>;

/// Calls f(index, type) for the types of the table, until it returns true.
template <class F>
bool any_fault_type(const F& f) {
  return []<std::size_t... Index>(const F& call, std::index_sequence<Index...>) {
    return (call(std::integral_constant<std::size_t, Index>{}, std::type_identity<std::tuple_element_t<Index, FaultTypes>>{}) || ...);
  }
  (f, std::make_index_sequence<std::tuple_size_v<FaultTypes>>{});
}

}  // namespace detail

PDP_INLINE Fault Fault::current(const std::string& where) {
  try {
    throw;
  } catch (const std::exception& error) {
    Fault fault{0, text(where, ": ", error.what())};
    detail::any_fault_type([&]<std::size_t Index, class E>(std::integral_constant<std::size_t, Index>, std::type_identity<E>) {
      using Caught = std::conditional_t<std::is_same_v<E, detail::OutOfMemory>, std::bad_alloc, E>;
      if (dynamic_cast<const Caught*>(&error) == nullptr) return false;
      fault.type = static_cast<std::uint32_t>(Index);
      return true;
    });
    return fault;
  } catch (...) {
    return {0, text(where, ": an object was thrown that is not a std::exception")};
  }
}

PDP_INLINE void Fault::raise() const {
  detail::any_fault_type([&]<std::size_t Index, class E>(std::integral_constant<std::size_t, Index>, std::type_identity<E>) {
    if (type == Index) throw E{message};
    return false;
  });
  throw RemoteError{message};
}

PDP_INLINE void Fault::write(Writer& writer) const {
  writer.put(type);
  writer.put(static_cast<std::uint32_t>(message.size()));
  for (const char letter : message) writer.put(letter);  // never as a large array
}
PDP_INLINE Fault Fault::read(Reader& reader) {
  Fault fault{reader.get<std::uint32_t>(), {}};
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) fault.message.push_back(reader.get<char>());
  return fault;
}

}  // namespace pdp::rpc
