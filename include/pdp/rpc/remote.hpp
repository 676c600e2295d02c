#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/call/encode.hpp>
#include <pdp/rpc/call/functions.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/codec.hpp>
#include <pdp/rpc/error.hpp>
#include <pdp/rpc/future.hpp>

namespace pdp::rpc {

namespace detail {

/// A reference of this rank to an object. All copies of a Remote on this rank share it.
class Reference {
 public:
  Reference(std::weak_ptr<Core> core, int owner, SlotId slot, std::uint64_t weight)
      : core_{std::move(core)}, slot_{slot}, weight_{weight}, owner_{owner} {}
  Reference(Reference&&) = delete;
  ~Reference();

  [[nodiscard]] int owner() const { return owner_; }
  [[nodiscard]] SlotId slot() const { return slot_; }
  /// Throws EmptyReference if the Node has ended.
  [[nodiscard]] std::shared_ptr<Core> core() const;
  /// Returns the weight for a reference of another rank.
  [[nodiscard]] std::uint64_t give();
  /// From now on, an error of the object is not reported when the reference ends.
  void silence() { is_silent_ = true; }

 private:
  std::weak_ptr<Core> core_;
  SlotId slot_;
  std::uint64_t weight_;
  int owner_;
  bool is_silent_ = false;
};

/// Fails to compile unless the result of a call can travel.
template <class R>
constexpr bool result_travels() {
  static_assert(std::is_void_v<R> || Travels<R>,
                "pdp: the result of this remote call cannot travel to the caller; use remote<F>(), which leaves it at its owner, or see "
                "pdp/rpc/codec.hpp");
  return true;
}

/// Makes a call and waits for its result. send(wants, slot) returns the number of the message.
template <class R, class Send>
R wait_for(const std::shared_ptr<Core>& core, int to, std::string_view function, const Send& send) {
  const SlotId slot = core->new_slot();
  const std::uint64_t number = send(Head::Result::value_at_once, slot);
  auto future = Future<R>::expect(core, slot, to, function);
  try {
    return future.get();
  } catch (...) {
    core->stop_borrowing(to, number);
    throw;
  }
}

}  // namespace detail

/// A reference to an object of type T that lives on one rank, its owner. Copies are cheap. The object is destroyed when no rank has a
/// reference to it. A Remote can be an argument or a result of remote calls; if the parameter is a T, the function gets the object's value.
///
/// A method is named by a template argument: encoder.sync<&Encoder::forward>(x). The calls of one object run one after another, in the
/// order in which they arrive, on the thread of its owner while that waits. Arguments and results are copied between ranks; a method cannot
/// have a parameter that is a non-const reference. Throws EmptyReference if this reference is empty.
template <class T>
class Remote {
 public:
  using Object = T;

  Remote() = default;
  explicit Remote(std::shared_ptr<detail::Reference> reference) : reference_{std::move(reference)} {}

  /// Calls a method and waits for its result. Throws what the method throws (see RemoteError), and Timeout at the communicator's deadline.
  /// This rank runs calls of other ranks while it waits.
  template <auto F, class... A>
  auto sync(A&&... arguments) const {
    using R = typename detail::FunctionOf<decltype(F)>::Returned;
    static_assert(detail::result_travels<R>());
    return detail::wait_for<R>(core(), owner(), detail::function_name<F>(), [&](Head::Result wants, SlotId result) {
      return call<F, true>(wants, result, std::forward<A>(arguments)...);
    });
  }
  /// Starts a call of a method and returns at once. Arguments are copied or moved, but the elements of a std::span are borrowed until the
  /// result is ready.
  template <auto F, class... A>
  auto async(A&&... arguments) const {
    using R = typename detail::FunctionOf<decltype(F)>::Returned;
    static_assert(detail::result_travels<R>());
    const auto caller = core();
    const SlotId slot = caller->new_slot();
    call<F, false>(Head::Result::value, slot, std::forward<A>(arguments)...);
    return Future<R>::expect(caller, slot, owner(), detail::function_name<F>());
  }
  /// Starts a call of a method and returns a reference to its result, which stays at the owner of this object.
  template <auto F, class... A>
  auto remote(A&&... arguments) const {
    using R = typename detail::FunctionOf<decltype(F)>::Returned;
    static_assert(!std::is_void_v<R>, "pdp: remote<F>() refers to a result, but this function returns nothing; use one_way<F>()");
    const auto caller = core();
    const SlotId result = caller->new_slot();
    call<F, false>(Head::Result::reference, result, std::forward<A>(arguments)...);
    return Remote<R>{std::make_shared<detail::Reference>(caller, owner(), result, Slot::whole)};
  }
  /// Starts a call of a method whose result is not needed. An error of the call is thrown by the next call of this rank, or at the end of
  /// the job.
  template <auto F, class... A>
  void one_way(A&&... arguments) const {
    call<F, false>(Head::Result::none, {}, std::forward<A>(arguments)...);
  }

  /// Returns a copy of the object. Waits for it, and for the calls of the object that have arrived before.
  [[nodiscard]] T to_here() const {
    static_assert(Travels<T>, "pdp: to_here() copies the object to this rank, but values of its type cannot travel; see pdp/rpc/codec.hpp");
    using Entry = CopyEntry<T>;
    static_cast<void>(Entry::added);
    const auto caller = core();
    caller->raise_pending();
    return detail::wait_for<T>(caller, owner(), Entry::name, [&](Head::Result wants, SlotId result) {
      return caller->call(owner(), {.result = wants, .method = Entry::id, .target = slot(), .slot = result}, {});
    });
  }
  /// Returns the object itself on its owner. Waits until it is constructed, and throws the error of its construction. Throws ConfigError on
  /// other ranks.
  [[nodiscard]] T& local() const {
    const auto here = core();
    if (owner() != here->rank())
      throw ConfigError{text("local() on ", here->who(here->rank()), ": the object lives on ", here->who(owner()),
                             "; use to_here() for a copy of it, or call its methods")};
    return *static_cast<T*>(here->local(slot()).data.get());
  }
  /// Returns the rank on which the object lives.
  [[nodiscard]] int owner() const { return reference().owner(); }
  [[nodiscard]] SlotId slot() const { return reference().slot(); }
  explicit operator bool() const { return reference_ != nullptr; }

  /// For the library: one_way() for destructors. Throws and reports no error, and does nothing if the world has failed.
  template <auto F, class... A>
  void tell(A&&... arguments) const noexcept {
    try {
      const auto caller = core();
      const SlotId slot = caller->new_slot();
      send<F, false>(caller, Head::Result::value, slot, std::forward<A>(arguments)...);
      Future<typename detail::FunctionOf<decltype(F)>::Returned>::expect(caller, slot, owner(), detail::function_name<F>()).ignore();
    } catch (...) {  // the error of the world reaches this rank in its next call
    }
  }
  /// For the library: encodes the value of the object as an argument of a call to the rank `to`.
  void pass(Core& caller, int to, Writer& writer, std::vector<std::function<void()>>& after) const {
    writer.put(to == owner() ? Passed::own_slot : Passed::other_slot);
    writer.put(slot());
    writer.put(std::int32_t{owner()});
    if (to != owner()) after.emplace_back([this, &caller, to] { caller.forward(owner(), slot(), to, true); });
  }
  /// For the library: the reference, with a check that there is one.
  [[nodiscard]] detail::Reference& reference() const {
    if (!reference_) throw EmptyReference{"this Remote refers to no object: it is new or was moved from"};
    return *reference_;
  }

 private:
  [[nodiscard]] std::shared_ptr<Core> core() const { return reference().core(); }
  template <auto F, bool Waits, class... A>
  std::uint64_t call(Head::Result wants, SlotId result, A&&... arguments) const {
    const auto caller = core();
    caller->raise_pending();
    return send<F, Waits>(caller, wants, result, std::forward<A>(arguments)...);
  }
  template <auto F, bool Waits, class... A>
  std::uint64_t send(const std::shared_ptr<Core>& caller, Head::Result wants, SlotId result, A&&... arguments) const {
    using Entry = FunctionEntry<T, F>;
    static_cast<void>(Entry::added);
    return detail::Encoder<typename Entry::Types::Parameters>::template encode<Waits>(
        *caller, owner(),
        [&](Writer&& writer) {
          return caller->call(owner(), {.result = wants, .method = Entry::id, .target = slot(), .slot = result}, std::move(writer));
        },
        std::forward<A>(arguments)...);
  }

  std::shared_ptr<detail::Reference> reference_;
};

/// A reference travels with a part of its weight.
template <class T>
struct Codec<Remote<T>> {
  static void write(Writer& writer, const Remote<T>& value) {
    writer.put(static_cast<bool>(value));
    if (!value) return;
    writer.put(value.owner());
    writer.put(value.slot());
    writer.put(writer.measures() ? std::uint64_t{0} : value.reference().give());
  }
  static void read(Reader& reader, Remote<T>& into) {
    into = {};
    if (!reader.flag()) return;
    const auto owner = reader.get<int>();
    const auto slot = reader.get<SlotId>();
    const auto weight = reader.get<std::uint64_t>();
    into = Remote<T>{std::make_shared<detail::Reference>(reader.core(), owner, slot, weight)};
  }
};
static_assert(Travels<Remote<int>> && Travels<std::vector<Remote<std::string>>>);

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/source/remote.hpp>
#endif
