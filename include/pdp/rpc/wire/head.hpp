#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

/// The beginning of every message between two ranks. It has a fixed size, since a receive must know the size of its message. Values that
/// do not fit follow in messages of their own: first the rest of the encoded values, then each large array.
struct Head {
  enum class Kind : std::uint8_t {
    call,     // runs a method or a function, or constructs an object
    value,    // the result of a call
    ready,    // the result of a call is complete and stays at its owner until it is requested
    failure,  // the error of a call
    forward,  // asks the owner of a result to send it to another rank
    release,  // gives up references, and results that are not needed
    grant,    // asks the owner of an object for more weight, so that a reference can be passed on
    probe,    // looks for a cycle of calls that wait for each other
    end,      // the master ends the job
    bye,      // the last message of a rank
  };
  // The form in which the caller of a call wants the result.
  enum class Result : std::uint8_t {
    none,           // nothing, but an error is reported
    value,          // the value; a large one may stay at its owner until it is requested
    value_at_once,  // the value, whatever its size
    reference,      // it stays at its owner
  };

  Kind kind = Kind::call;
  Result result = Result::none;  // call: as above; forward: reference if the slot is an object
  std::int32_t rank = -1;        // forward: the rank to which to send the result; probe: the rank that looks for a cycle
  std::uint32_t bytes = 0;       // of the encoded values
  std::uint32_t arrays = 0;      // large arrays that follow
  std::uint32_t served = 0;      // value, ready, failure: how many forwards the owner has carried out; probe: how many ranks it has passed
  std::uint64_t method = 0;      // call: the identifier of the method
  SlotId target{};               // call: the object; 0 for a function or a constructor
  SlotId slot{};                 // the result of a call, which this message makes, carries or requests
  std::uint64_t wait = 0;        // probe: the number of the wait of that rank

  static constexpr std::size_t size = 256;  // bytes of the message
};

/// A Head and the first bytes of the encoded values.
struct HeadMessage {
  static constexpr std::size_t room = Head::size - sizeof(Head);

  Head head;
  std::array<std::byte, room> values{};
};
static_assert(std::is_trivially_copyable_v<HeadMessage> && sizeof(HeadMessage) == Head::size);

}  // namespace pdp::rpc
