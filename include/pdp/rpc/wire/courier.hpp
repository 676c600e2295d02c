#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

/// A message whose encoded values have arrived. Borrows them.
struct Message {
  int from = -1;
  const Head& head;
  std::span<const std::byte> values;
  std::span<const std::uint64_t> sizes;  // of the large arrays, in bytes
};

/// The destinations of the large arrays of a message, and the function to call when the message is complete.
struct Arrival {
  std::vector<std::span<std::byte>> arrays;
  std::function<void()> complete;
};

/// Carries messages of any size between ranks over the point-to-point messages of a communicator. Messages from one rank to another arrive
/// in the order in which they were sent. Messages move while the rank calls poll() or sleep().
class Courier {
 public:
  /// Called when the encoded values of a message have arrived. Its exceptions are faults of the protocol and end the rank.
  using Open = std::function<Arrival(const Message& message)>;

  /// `group`: a group of its own, since it also receives. Use the courier in one thread only.
  Courier(comm::Any group, Open open);
  Courier(Courier&&) = delete;
  ~Courier();

  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] int size() const { return group_.size(); }
  [[nodiscard]] comm::Duration deadline() const { return group_.deadline(); }

  /// Sends a message, to this rank as well. The arrays of the writer are borrowed until `sent` is called.
  /// Returns the number of the message among those to this rank, for borrows().
  std::uint64_t send(int to, Head head, Writer values = {}, std::function<void()> sent = {});
  /// Moves all that can move without waiting. Returns whether a message has arrived completely.
  bool poll();
  /// Sleeps until messages may have moved, at the latest until the given time.
  void sleep(comm::TimePoint until) { group_.wait_for_progress(until); }
  /// Sends the last message to each rank and waits for theirs. The courier sends and receives nothing afterwards.
  void finish(comm::TimePoint until);
  [[nodiscard]] bool idle() const;
  /// Returns whether a message to a rank still borrows memory.
  [[nodiscard]] bool borrows(int to, std::uint64_t number) const;
  /// Returns whether all messages to a rank have been sent.
  [[nodiscard]] bool has_sent_all(int to) const { return outgoing_[as_size(to)].empty(); }
  void abort(const std::string& reason) { group_.abort(reason); }

  /// Larger arrays travel in several messages of this many bytes, so that a rank without memory for them can still receive them.
  static constexpr std::size_t piece = std::size_t{1} << 24;

 private:
  using Work = comm::Any::Work;

  struct Outgoing {
    HeadMessage message;
    Writer values;
    std::vector<std::byte> encoded;  // sizes of the arrays and values, if they do not fit into the message
    std::vector<Work> works;
    std::function<void()> sent;
  };
  struct Incoming {
    enum class Part { head, values, arrays, ended };

    Part part = Part::head;
    HeadMessage message;
    std::vector<std::byte> values;
    Arrival arrival;
    std::vector<Work> works;  // of the part that is being received
  };

  void receive_head(int from);
  bool move_messages();
  /// Handles the part that has arrived from a rank. Returns false if it has not arrived.
  bool advance(int from);
  /// Opens a message, and receives its large arrays.
  void open(int from);
  /// Returns what to do with a message. `values`: the sizes of its arrays, then its encoded values.
  Arrival read(int from, const Head& head, std::span<const std::byte> values);

  comm::Any group_;
  Open open_;
  std::vector<std::uint64_t> completed_;        // messages to each rank that have been sent
  std::vector<std::deque<Outgoing>> outgoing_;  // by rank
  std::vector<Incoming> incoming_;              // by rank
  std::vector<std::uint64_t> sizes_;            // of the arrays of the message that is being opened
  std::exception_ptr failure_;                  // has ended the courier: no message is valid afterwards
  std::vector<std::byte> discarded_;            // receives arrays for which there is no memory
};

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/wire/source/courier.hpp>
#endif
