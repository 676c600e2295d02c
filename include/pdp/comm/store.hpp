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

/// A store of any type: what works with it need not know which, and is compiled once. Does not own it.
class StoreView {
 public:
  template <Store S>
  requires(!std::same_as<S, StoreView>) StoreView(S& store)
      : store_{&store},
        set_{[](void* self, std::string_view key, std::string_view value) { static_cast<S*>(self)->set(key, value); }},
        wait_{[](void* self, std::string_view key, TimePoint deadline) { return static_cast<S*>(self)->wait(key, deadline); }} {
    if constexpr (requires { std::string{store.local_address()}; }) local_address_ = store.local_address();
  }

  void set(std::string_view key, std::string_view value) const { set_(store_, key, value); }
  [[nodiscard]] std::string wait(std::string_view key, TimePoint deadline) const { return wait_(store_, key, deadline); }
  /// The address at which this process is reached by those who share the store: that of its own connection to the store, where it has one.
  [[nodiscard]] const std::string& local_address() const { return local_address_; }

 private:
  void* store_;
  void (*set_)(void*, std::string_view, std::string_view);
  std::string (*wait_)(void*, std::string_view, TimePoint);
  std::string local_address_ = "127.0.0.1";
};

static_assert(Store<StoreView>);

}  // namespace pdp::comm
