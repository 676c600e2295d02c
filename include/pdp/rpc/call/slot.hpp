#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

struct Slot;

/// A call that has arrived at the rank that runs it.
struct Call {
  const Method* method = nullptr;
  /// In place of a method: sends the object's value, or passes it to a call on this rank, which then keeps the object until it ends.
  std::function<std::shared_ptr<Call>(Slot& object)> visit;
  std::shared_ptr<void> arguments;
  int caller = -1;
  Head::Result wants = Head::Result::none;
  SlotId target;
  SlotId result;
  bool runs = false;
  int missing = 0;                                          // arguments that have not arrived, and 1 for the call itself
  std::vector<Awaited> needs;                               // arguments that come from other ranks
  std::vector<SlotId> kept;                                 // objects of this rank that are arguments
  std::vector<std::shared_ptr<std::shared_ptr<void>>> own;  // arguments that are the object itself
  std::optional<Fault> fault;                               // an argument has failed
};

/// An object or the result of a call on the rank that owns it. References to it carry weights, whose sum the owner knows (weighted
/// reference counting: Bevan 1987, Watson and Watson 1987). A rank that passes a reference on gives away part of its weight, so the owner
/// gets a message only when a reference ends.
struct Slot {
  static constexpr std::uint64_t whole = std::uint64_t{1} << 62;

  enum class State : std::uint8_t { expected, ready, failed };

  State state = State::expected;
  Value value;
  Fault fault;
  std::uint64_t weight = whole;             // of all references; 0: nothing refers to it
  bool is_object = false;                   // it stays until no reference is left
  bool error_is_known = false;              // its error has reached a caller
  int sending = 0;                          // messages that borrow its memory
  int maker = -1;                           // the rank that made the call
  std::vector<int> forwards;                // ranks that are to get the value when it is ready
  std::weak_ptr<Call> maker_call;           // the call whose result it is, until that is complete
  std::shared_ptr<Call> running;            // the call that the object runs
  std::deque<std::shared_ptr<Call>> calls;  // calls of the object that have arrived, in this order
};

}  // namespace pdp::rpc
