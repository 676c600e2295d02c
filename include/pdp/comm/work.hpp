#pragma once

#include <concepts>

namespace pdp::comm {

/// What is in flight. It owns the borrow of the spans that were given to the call: their contents may be touched again after wait(), and
/// not before. wait() throws what went wrong. A default-constructed one waits for nothing.
///
/// - pending(): there is something that has not been waited for.
/// - done(): wait() would return, or throw, at once. It moves what can be moved, and never waits.
template <class W>
concept Waitable = std::movable<W> && !std::copyable<W> && std::default_initializable<W> && requires(W & work, const W& observed) {
  work.wait();
  { work.done() } -> std::same_as<bool>;
  { observed.pending() } -> std::same_as<bool>;
};

}  // namespace pdp::comm
