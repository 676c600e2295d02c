#pragma once

#include <concepts>
#include <string_view>

namespace pdp::comm {

/// What a communicator declares of itself, by static constants of these names. Those that it does not declare are false, or empty.
struct Traits {
  /// No call outlives the group's deadline, and a dead peer is thrown as PeerLost{rank}.
  bool fails_fast = false;
  /// Reductions are carried out in the order of ranks, so that all runs on as many ranks give the same bits, and those of a serial program
  /// that adds in this order.
  bool rank_ordered = false;
  /// The spans of calls are memory of a device, which the host cannot touch.
  bool device_buffers = false;
  /// Asynchronous calls that are waited for on a stream may be recorded with it: each time the record is carried out, so are they. All
  /// ranks of a group record a call, or none; and they carry out together what they have recorded together.
  bool records_calls = false;
  /// A group carries out messages one after another, as it does collectives: if a message comes late, all that the rank calls after it in
  /// that group comes later. So the ranks make the messages between them in one order, whatever their tags; those that go both ways start
  /// together (see grouped, and send_recv), and those that may pass others go in a group of their own.
  bool queues_messages = false;
  /// Groups have one rank each, so that a call in place does nothing, wherever the memory is.
  bool alone = false;
  /// By which a command line chooses the communicator and errors call it.
  std::string_view name{};
};

namespace detail {

template <class C>
consteval Traits declared_traits() {
  Traits traits;
  if constexpr (requires {
                  { C::traits } -> std::convertible_to<Traits>;
                })
    traits = C::traits;
  if constexpr (requires {
                  { C::fails_fast } -> std::convertible_to<bool>;
                })
    traits.fails_fast = C::fails_fast;
  if constexpr (requires {
                  { C::rank_ordered } -> std::convertible_to<bool>;
                })
    traits.rank_ordered = C::rank_ordered;
  if constexpr (requires {
                  { C::device_buffers } -> std::convertible_to<bool>;
                })
    traits.device_buffers = C::device_buffers;
  if constexpr (requires {
                  { C::records_calls } -> std::convertible_to<bool>;
                })
    traits.records_calls = C::records_calls;
  if constexpr (requires {
                  { C::queues_messages } -> std::convertible_to<bool>;
                })
    traits.queues_messages = C::queues_messages;
  if constexpr (requires {
                  { C::alone } -> std::convertible_to<bool>;
                })
    traits.alone = C::alone;
  if constexpr (requires {
                  { C::name } -> std::convertible_to<std::string_view>;
                })
    traits.name = C::name;
  return traits;
}

}  // namespace detail

/// The traits of a communicator, or of a backend's calls. A type that is built on another one takes over that one's as its own `traits`;
/// constants that it declares itself come first.
template <class C>
inline constexpr Traits traits_of = detail::declared_traits<C>();

}  // namespace pdp::comm
