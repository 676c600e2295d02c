#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <pdp/rpc/call/promise_state.hpp>
#include <pdp/rpc/call/value.hpp>

namespace pdp::rpc {

/// The result of a remote call that its function gives later. A function that returns a Promise<R> is called like one that returns an R.
/// The object is free for its next calls when the function has returned; the caller gets the result when a copy of the Promise is set, for
/// example by one of these calls. All copies share the result. Return a new Promise from each call. If the last copy ends without a result,
/// the call fails with Error.
template <class R>
class Promise {
 public:
  Promise() = default;
  Promise(const Promise&) = default;  // a move copies, too, so that no Promise is empty
  Promise& operator=(const Promise&) = default;

  /// Gives the result. Throws Error if it has been given.
  template <std::convertible_to<R> V>
  requires(!std::is_void_v<R>) void set(V&& value) {
    state_->check();
    state_->value = Value::of(std::make_shared<R>(std::forward<V>(value)));
    state_->set();
  }
  void set() requires std::is_void_v<R> {
    state_->check();
    state_->set();
  }
  /// Ends the call with an error. Throws Error if the result has been given.
  void fail(std::exception_ptr error) {
    state_->check();
    state_->error = std::move(error);
    state_->set();
  }
  [[nodiscard]] const std::shared_ptr<PromiseState>& state() const { return state_; }

 private:
  std::shared_ptr<PromiseState> state_ = std::make_shared<PromiseState>();
};

namespace detail {

template <class R>
inline constexpr bool is_promise = false;
template <class R>
inline constexpr bool is_promise<Promise<R>> = true;

/// The result of a function as its caller gets it.
template <class R>
struct Promised {
  using type = R;
};
template <class R>
struct Promised<Promise<R>> {
  using type = R;
};

}  // namespace detail

static_assert(std::copyable<Promise<int>> && std::copyable<Promise<void>>);

}  // namespace pdp::rpc
