#pragma once

#include <concepts>

#include <pdp/core/copyable.hpp>
#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// A call in flight. It borrows the spans that were passed to the call: do not read or write them before wait() returns. wait() throws the
/// error of the call, if there is one. A default-constructed Work waits for nothing. A Work that is destroyed before its call is complete
/// ends the world.
///
/// - pending(): whether there is a call that has not been waited for.
/// - done(): whether wait() would return, or throw, at once. Advances calls in flight as far as possible without blocking.
template <class W>
concept Waitable = Movable<W> && !Copyable<W> && std::is_default_constructible_v<W> && requires(W & work, const W& observed) {
  work.wait();
  { work.done() } -> std::same_as<bool>;
  { observed.pending() } -> std::same_as<bool>;
};

}  // namespace pdp::comm
