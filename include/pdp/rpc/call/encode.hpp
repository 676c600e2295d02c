#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/functions.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

template <class R>
class Future;
template <class T>
class Remote;

namespace detail {

template <class A>
inline constexpr bool is_future = false;
template <class R>
inline constexpr bool is_future<Future<R>> = true;
template <class A>
inline constexpr bool is_remote = false;
template <class T>
inline constexpr bool is_remote<Remote<T>> = true;

/// Whether an argument of type A is a handle for a value that the parameter P takes.
template <class A, class P>
inline constexpr bool refers_to = false;
template <class R, class P>
inline constexpr bool refers_to<Future<R>, P> = std::same_as<R, Stored<P>>;
template <class T, class P>
inline constexpr bool refers_to<Remote<T>, P> = std::same_as<T, Stored<P>>;

template <class A>
inline constexpr bool is_span = false;
template <class T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;

/// The parameter type of a constructor for an argument: a copy of it.
template <class A>
struct CopyType {
  using type = Stored<std::decay_t<A>>;
};
template <class R>
struct CopyType<Future<R>> {
  using type = R;
};
template <class T, std::size_t N>
struct CopyType<std::span<T, N>> {
  using type = std::vector<std::remove_const_t<T>>;
};
template <>
struct CopyType<char*> {
  using type = std::string;
};
template <class A>
using Copy = typename CopyType<std::decay_t<A>>::type;

/// Returns the form in which the caller keeps an argument until the message has been sent: a reference if it waits (`Waits`), else a copy.
/// A span is borrowed in both cases.
template <class P, class A, bool Waits>
auto hold(A&& argument) {
  using D = std::remove_cvref_t<A>;
  if constexpr (refers_to<D, P>) {
    return &argument;
  } else if constexpr (is_span<D>) {
    static_assert(std::same_as<std::vector<typename D::value_type>, Stored<P>>,
                  "pdp: this span does not fit the parameter of a remote call");
    return std::span<const typename D::value_type>{argument};
  } else if constexpr (Waits && std::same_as<D, Stored<P>>) {
    return std::cref(argument);
  } else {
    static_assert(std::is_convertible_v<A, Stored<P>> || std::is_constructible_v<Stored<P>, A>,
                  "pdp: an argument of a remote call does not convert to the type of its parameter (see P and A in the note about hold)");
    return Stored<P>(std::forward<A>(argument));
  }
}

/// Encodes the arguments of a call to rank `to`.
template <class Parameters>
struct Encoder;
template <class... P>
struct Encoder<std::tuple<P...>> {
  /// Calls send(writer) and returns its result, and asks the owners of arguments that are results to forward them to `to`.
  template <bool Waits, class Send, class... A>
  static std::uint64_t encode(Core& core, int to, const Send& send, A&&... arguments) {
    static_assert(sizeof...(A) == sizeof...(P), "pdp: a remote call needs as many arguments as its function has parameters");
    const auto held = std::make_shared<std::tuple<decltype(hold<P, A, Waits>(std::forward<A>(arguments)))...>>(
        hold<P, A, Waits>(std::forward<A>(arguments))...);
    Writer writer;
    std::vector<std::function<void()>> forwards;
    std::apply([&](auto&... each) { (one<P>(core, to, writer, forwards, each), ...); }, *held);
    writer.keep(held);
    const std::uint64_t number = send(std::move(writer));
    for (const auto& forward : forwards) forward();
    return number;
  }

 private:
  template <class Q, class H>
  static void one(Core& core, int to, Writer& writer, std::vector<std::function<void()>>& forwards, H& held) {
    if constexpr (std::is_pointer_v<H>) {
      held->pass(core, to, writer, forwards);
    } else {
      writer.put(Passed::value);
      if constexpr (is_span<H>)
        Codec<H>::write(writer, held);
      else
        Codec<Stored<Q>>::write(writer, held);
    }
  }
};

}  // namespace detail

}  // namespace pdp::rpc
