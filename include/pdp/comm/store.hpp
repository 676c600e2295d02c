#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <pdp/comm/transport.hpp>

namespace pdp::comm {

/// Where the ranks of a job find each other before they can talk: a small table that all of them see. Values are bytes.
///
/// set() stores a value once and for all. wait() gives the value of a key as soon as some rank has set it, or throws Timeout at the
/// deadline.
template <class S>
concept Store = requires(S& store, std::string_view key, std::string_view value, TimePoint deadline) {
  store.set(key, value);
  { store.wait(key, deadline) } -> std::same_as<std::string>;
};

}  // namespace pdp::comm
