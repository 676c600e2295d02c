#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/join/membership.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// A small table that all ranks of a job can access, through which they find each other before they can communicate. Values are bytes.
///
/// - set() stores a value, which never changes afterwards.
/// - wait() returns the value of a key as soon as some rank has set it, or throws Timeout at the deadline.
/// - get() returns the value of a key, or nothing if no rank has set it yet.
/// - add() adds to a counter, which begins at 0, and returns its new value. The value of its key is that number as text.
///
/// A store may have a fail(failure), by which a rank tells all others why the job cannot start. From then on every call of every rank
/// throws the first such failure, even a wait() that has begun before.
///
/// A store may authenticate ranks itself, by a secret that is not in the store. Then its membership() returns the credentials that its
/// ranks prove to each other. If a store does not authenticate ranks, every process that can read it can join the job. Examples of such
/// stores are memory of this process and a folder of the user.
template <class S>
concept Store = requires(S& store, std::string_view key, std::string_view value, TimePoint deadline) {
  store.set(key, value);
  { store.wait(key, deadline) } -> std::same_as<std::string>;
  { store.get(key) } -> std::same_as<std::optional<std::string>>;
  { store.add(key, std::int64_t{1}) } -> std::same_as<std::int64_t>;
};

/// Returns a failure as a value for a store.
std::string encode(const Failure& failure);
/// Returns the failure in such a value. A value of another form becomes the message.
Failure decode_failure(std::string_view value);

/// A type-erased reference to a store, so that code that uses stores is compiled once. Does not own the store.
class StoreView {
 public:
  template <Store S>
  requires(!std::same_as<S, StoreView>) StoreView(S& store)
      : store_{&store},
        set_{[](void* self, std::string_view key, std::string_view value) { static_cast<S*>(self)->set(key, value); }},
        wait_{[](void* self, std::string_view key, TimePoint deadline) { return static_cast<S*>(self)->wait(key, deadline); }},
        get_{[](void* self, std::string_view key) { return static_cast<S*>(self)->get(key); }},
        add_{[](void* self, std::string_view key, std::int64_t amount) { return static_cast<S*>(self)->add(key, amount); }} {
    if constexpr (requires(const Failure& failure) { store.fail(failure); })
      fail_ = [](void* self, const Failure& failure) { static_cast<S*>(self)->fail(failure); };
    if constexpr (requires { std::string{store.local_address()}; }) local_address_ = store.local_address();
    if constexpr (requires {
                    { store.membership() } -> std::same_as<const Membership&>;
                  })
      membership_ = &store.membership();
  }

  void set(std::string_view key, std::string_view value) const { set_(store_, key, value); }
  [[nodiscard]] std::string wait(std::string_view key, TimePoint deadline) const { return wait_(store_, key, deadline); }
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const { return get_(store_, key); }
  std::int64_t add(std::string_view key, std::int64_t amount) const { return add_(store_, key, amount); }
  /// Tells all ranks why the job cannot start, if the store can do so.
  void fail(const Failure& failure) const {
    if (fail_ != nullptr) fail_(store_, failure);
  }
  /// Returns the address at which the other ranks reach this process: the local address of its connection to the store, or 127.0.0.1 if
  /// there is no such connection. reached_at() changes it.
  [[nodiscard]] const std::string& local_address() const { return local_address_; }
  /// Returns a view of the same store, for a process that others reach at that address.
  [[nodiscard]] StoreView reached_at(std::string address) const {
    StoreView view = *this;
    view.local_address_ = std::move(address);
    return view;
  }
  /// Returns the credentials that the ranks of the store prove to each other; null if the store does not authenticate ranks.
  [[nodiscard]] const Membership* membership() const { return membership_; }

 private:
  void* store_;
  void (*set_)(void*, std::string_view, std::string_view);
  std::string (*wait_)(void*, std::string_view, TimePoint);
  std::optional<std::string> (*get_)(void*, std::string_view);
  std::int64_t (*add_)(void*, std::string_view, std::int64_t);
  void (*fail_)(void*, const Failure&) = nullptr;
  std::string local_address_ = "127.0.0.1";
  const Membership* membership_ = nullptr;
};

static_assert(Store<StoreView>);

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/join/source/store.hpp>
#endif
