#pragma once

#include <concepts>
#include <string_view>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// The properties that a communicator declares, by static constants with the names of these members. A property that it does not declare is
/// false, or empty.
struct Traits {
  /// No call outlasts the deadline of the group, and a dead peer is reported as PeerLost{rank}.
  bool fails_fast = false;
  /// Reductions combine values in the order of ranks. So all runs with the same number of ranks give the same bits, as does a serial
  /// program that adds in this order.
  bool rank_ordered = false;
  /// The spans of calls are in device memory, which the host cannot access.
  bool device_buffers = false;
  /// Asynchronous calls that a stream waits for (wait_on) can be captured in a graph with that stream, and run again on every replay.
  /// Either all ranks of a group capture a call, or none does. Graphs that were captured together must be replayed together.
  bool records_calls = false;
  /// A group carries out messages one after another, like collectives: a message that is late delays all later calls of the rank in that
  /// group. So two ranks must start the messages between them in the same order, whatever their tags. Messages in both directions must
  /// start together (see grouped and send_recv). Messages that may overtake others need a group of their own.
  bool queues_messages = false;
  /// Every group has one rank, so a call in place does nothing, in any kind of memory.
  bool alone = false;
  /// The name of the communicator on the command line and in error messages.
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

/// The traits of a communicator, or of the calls of a backend. A type that wraps another type copies its traits to a constant `traits` of
/// its own. Other constants that the wrapper declares take precedence.
template <class C>
inline constexpr Traits traits_of = detail::declared_traits<C>();

}  // namespace pdp::comm
