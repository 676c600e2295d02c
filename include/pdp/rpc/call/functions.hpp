#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/promise.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

namespace detail {

/// The type in which the rank that runs a call stores an argument for a parameter of type P.
template <class P>
struct StoredType {
  using type = std::remove_cvref_t<P>;
};
template <class T>
struct StoredType<std::span<const T>> {
  using type = std::vector<T>;
};
template <>
struct StoredType<std::string_view> {
  using type = std::string;
};
template <>
struct StoredType<const char*> {
  using type = std::string;
};
template <class P>
using Stored = typename StoredType<std::conditional_t<std::is_reference_v<P>, std::remove_cvref_t<P>, std::remove_cv_t<P>>>::type;

/// The result of a function as it is stored and sent.
template <class R>
using Result = std::remove_cvref_t<R>;

template <class...>
struct Types;

template <class R, class C, class... P>
struct FunctionTypes {
  using Class = C;
  using Kept = Result<R>;                          // as the function returns it
  using Returned = typename Promised<Kept>::type;  // as its caller gets it
  using Parameters = std::tuple<P...>;
};
template <class F>
struct FunctionOf;
template <class R, class... P>
struct FunctionOf<R (*)(P...)> : FunctionTypes<R, void, P...> {};
template <class R, class... P>
struct FunctionOf<R (*)(P...) noexcept> : FunctionTypes<R, void, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...)> : FunctionTypes<R, C, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...) noexcept> : FunctionTypes<R, C, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...) const> : FunctionTypes<R, C, P...> {};
template <class R, class C, class... P>
struct FunctionOf<R (C::*)(P...) const noexcept> : FunctionTypes<R, C, P...> {};

/// Fails to compile, with the type and the index of the argument in the compiler's message, unless the argument can travel.
template <class Parameter, std::size_t Index>
constexpr bool check_argument() {
  static_assert(!std::is_lvalue_reference_v<Parameter> || std::is_const_v<std::remove_reference_t<Parameter>>,
                "pdp: a remote call passes copies, so this parameter must not be a reference to something that the function changes; "
                "take it by value or by const reference, and return the result (see Parameter and Index in the note about check_argument)");
  static_assert(
      Travels<Stored<Parameter>>,
      "pdp: this argument of a remote call cannot travel to another rank: its type is no number, enumeration, string, container or "
      "aggregate of these, no Remote, and has no Codec; see pdp/rpc/codec.hpp (see Parameter and Index in the note about "
      "check_argument)");
  return true;
}

/// One argument on the rank that runs the call.
template <class P>
struct Argument {
  Stored<P> value{};
  std::shared_ptr<void> local;  // the value of a slot of this rank, if the argument refers to one

  /// `all`: keeps all arguments of the call, this one included.
  void read(Reader& reader, const Bind& bind, const std::shared_ptr<void>& all) {
    const auto passed = reader.get<Passed>();
    if (passed == Passed::value) {
      Codec<Stored<P>>::read(reader, value);
      return;
    }
    const auto slot = reader.get<SlotId>();
    const auto owner = reader.get<std::int32_t>();
    bind({slot, owner}, passed, [this, all](Reader& later) { Codec<Stored<P>>::read(later, value); }, {all, &local});
  }
  /// Returns the argument for the call. It is moved if the parameter takes it by value and the argument belongs to the call alone.
  decltype(auto) pass() {
    using S = Stored<P>;
    const S& read = local ? *static_cast<const S*>(local.get()) : value;
    if constexpr (std::same_as<std::remove_cvref_t<P>, S> && !std::is_lvalue_reference_v<P>) {
      if constexpr (std::copy_constructible<S>)
        return local ? S(read) : S(std::move(value));
      else
        return S(std::move(value));
    } else if constexpr (std::same_as<std::remove_cv_t<P>, const char*>) {
      return read.c_str();
    } else {
      return static_cast<const S&>(read);
    }
  }
};

template <class Parameters>
struct ArgumentsOf;
template <class... P>
struct ArgumentsOf<std::tuple<P...>> {
  std::tuple<Argument<P>...> all;

  static std::shared_ptr<void> read(Reader& reader, const Bind& bind) {
    auto arguments = std::make_shared<ArgumentsOf>();
    std::apply([&](Argument<P>&... each) { (each.read(reader, bind, arguments), ...); }, arguments->all);
    return arguments;
  }
  template <class F>
  decltype(auto) apply(F&& f) {
    return std::apply([&](Argument<P>&... each) -> decltype(auto) { return f(each.pass()...); }, all);
  }
  static constexpr bool check() {
    return []<std::size_t... Index>(std::index_sequence<Index...>) { return (check_argument<P, Index>() && ...); }
    (std::index_sequence_for<P...>{});
  }
};

/// Stores what a call returns.
template <class R, class F>
Value keep_result(F&& call) {
  if constexpr (std::is_void_v<R>) {
    call();
    return {};
  } else if constexpr (is_promise<R>) {
    return {nullptr, nullptr, call().state()};
  } else {
    return Value::of(std::make_shared<Result<R>>(call()));
  }
}

}  // namespace detail

/// The entry of a member function F of T, or of a free function if T is void. Using `added` adds it to the table.
template <class T, auto F>
struct FunctionEntry {
  using Types = detail::FunctionOf<decltype(F)>;
  using Arguments = detail::ArgumentsOf<typename Types::Parameters>;
  static_assert(Arguments::check());

  static Value run(void* arguments, void* object) {
    return detail::keep_result<typename Types::Kept>([&]() -> decltype(auto) {
      return static_cast<Arguments*>(arguments)->apply([&](auto&&... each) -> decltype(auto) {
        if constexpr (std::is_void_v<T>) {
          return F(std::forward<decltype(each)>(each)...);
        } else {
          typename Types::Class& self = *static_cast<T*>(object);  // F may be a member of a base class
          return (self.*F)(std::forward<decltype(each)>(each)...);
        }
      });
    });
  }
  static constexpr std::string_view signature = detail::signature<detail::Types<FunctionEntry, decltype(F)>>();  // overloads differ in F
  static constexpr std::uint64_t id = detail::fnv1a(signature);
  static inline const bool added = Method::add({id, detail::function_name<F>(), signature, &Arguments::read, &run});
};

/// The entry of the constructor of T that takes values of these types.
template <class T, class... P>
struct ConstructorEntry {
  using Arguments = detail::ArgumentsOf<std::tuple<P...>>;
  static_assert(Arguments::check());

  static Value run(void* arguments, void* /*object*/) {
    return static_cast<Arguments*>(arguments)->apply([](auto&&... each) {
      if constexpr (std::is_constructible_v<T, P...>)
        return Value::of(std::make_shared<T>(std::forward<decltype(each)>(each)...));
      else
        return Value::of(std::shared_ptr<T>{new T{std::forward<decltype(each)>(each)...}});
    });
  }
  static constexpr std::string_view signature = detail::signature<ConstructorEntry>();
  static constexpr std::uint64_t id = detail::fnv1a(signature);
  static inline const bool added = Method::add({id, detail::type_name<T>(), signature, &Arguments::read, &run});
};

/// The entry of a call that returns a copy of an object.
template <class T>
struct CopyEntry {
  static std::shared_ptr<void> read(Reader&, const Bind&) { return nullptr; }
  static Value run(void* /*arguments*/, void* object) { return Value::of(std::make_shared<T>(*static_cast<const T*>(object))); }

  static constexpr std::string_view name = "to_here()";
  static constexpr std::string_view signature = detail::signature<CopyEntry>();
  static constexpr std::uint64_t id = detail::fnv1a(signature);
  static inline const bool added = Method::add({id, name, signature, &read, &run});
};

}  // namespace pdp::rpc
