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

  void set() {
    if (std::exchange(is_set, true)) throw Error{"the result of a Promise has been set twice"};
    if (done) done(*this);
  }
  /// Calls then(*this) when the result is there.
  void when_set(std::function<void(PromiseState& result)> then) {
    done = std::move(then);
    if (is_set) done(*this);
  }
};

}  // namespace pdp::rpc
