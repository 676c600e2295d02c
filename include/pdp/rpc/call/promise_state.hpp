#pragma once

#include <exception>
#include <functional>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/rpc/call/value.hpp>

namespace pdp::rpc {

/// The result that a function gives after it has returned; see Promise.
struct PromiseState {
  Value value{};
  std::exception_ptr error{};
  bool is_set = false;
  bool is_taken = false;                             // a call has returned it
  std::function<void(PromiseState& result)> done{};  // called once, when the result is there

  PromiseState() = default;
  PromiseState(PromiseState&&) = delete;
  ~PromiseState() {
    if (is_set || !done) return;
    error = std::make_exception_ptr(Error{"the function has dropped its Promise without a result"});
    try {
      done(*this);
    } catch (...) {  // the world has failed, and its error reaches this rank in its next call
    }
  }

  /// Call this before the result is stored, and set() afterwards.
  void check() const {
    if (is_set) throw Error{"the result of a Promise has been set twice"};
  }
  void set() {
    is_set = true;
    if (done) done(*this);
  }
  /// Marks that a call has returned this Promise. Throws Error if another one has.
  void take() {
    if (std::exchange(is_taken, true)) throw Error{"one Promise was returned from two calls; return a new one from each call"};
  }
  /// Calls then(*this) when the result is there.
  void when_set(std::function<void(PromiseState& result)> then) {
    done = std::move(then);
    if (is_set) done(*this);
  }
};

}  // namespace pdp::rpc
