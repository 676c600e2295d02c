#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/call/slot.hpp>
#include <pdp/rpc/call/value.hpp>
#include <pdp/rpc/statistics.hpp>
#include <pdp/rpc/timeline.hpp>
#include <pdp/rpc/wire/courier.hpp>
#include <pdp/rpc/wire/head.hpp>
#include <pdp/rpc/wire/slot_id.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

/// The end of the wait for a value that a rank expects.
struct Outcome {
  Head::Kind kind = Head::Kind::value;  // value, ready or failure
  /// How many forwards the owner of the value has carried out. A forward and the answer may cross on the way. The owner then ignores the
  /// forward, and the caller passes the value on itself.
  std::uint32_t served = 0;
  Fault fault;  // if kind is failure
};

/// A value that a rank expects from another rank: the result of a call, or an argument.
struct Expectation {
  std::function<void(Reader&)> read;
  std::function<void(const Outcome&)> done;
};

/// Remote calls of one rank, without the types of the program: makes calls, runs the calls of others, and keeps the objects and results of
/// this rank. Everything happens on the thread of the rank, while it waits.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(comm::Any group, std::vector<std::string> names);
  Core(Core&&) = delete;
  ~Core();

  [[nodiscard]] int rank() const { return courier_.rank(); }
  [[nodiscard]] int size() const { return courier_.size(); }
  [[nodiscard]] const std::string& name(int rank) const;
  /// Throws ConfigError, which lists the names, if no rank has this name.
  [[nodiscard]] int find(std::string_view name) const;
  /// Returns "rank 1 (worker1)".
  [[nodiscard]] std::string who(int rank) const;
  [[nodiscard]] comm::Duration deadline() const { return courier_.deadline(); }
  /// Returns what this rank has called and run so far, by the name of the method.
  [[nodiscard]] std::vector<MethodStatistics> statistics() const;
  /// Adds to the time for which this rank has waited for results of a method.
  void waited(std::string_view method, comm::Duration time);
  /// From now on, records the calls that this rank runs. Every rank makes this call. end() then writes those of all ranks to the file.
  void record(std::string file);
  /// Sets for how long the rank polls for messages after the last one before it sleeps.
  void polling(comm::Duration duration) { polling_ = duration; }

  // For callers.

  [[nodiscard]] SlotId new_slot() { return {++slots_made_, rank()}; }
  /// Throws the error of an earlier one-way call, if there is one.
  void raise_pending();
  /// Sends a call. Returns the number of the message.
  std::uint64_t call(int to, Head head, Writer arguments);
  /// Asks the owner of a result to send it to another rank. `stays`: the result is an object, which stays at its owner.
  void forward(int owner, SlotId slot, int to, bool stays);
  /// Sends a value that this rank has received to a rank that expects it.
  void pass_on(int to, SlotId slot, const Value& value);
  void pass_on(int to, SlotId slot, const Fault& fault);
  /// `is_reference`: a reference to an object ends; else a result is not needed. `is_silent`: an error of the object is not reported.
  /// The message leaves before the next one to the owner, or when this rank waits.
  void release(int owner, SlotId slot, std::uint64_t weight, bool is_reference, bool is_silent = false);
  void expect(SlotId slot, Expectation expectation);
  /// Reports an error that no caller waits for in the next call or at the end of the job.
  void report(Fault fault);
  /// Returns more weight for a reference. Waits for its owner.
  std::uint64_t more_weight(int owner, SlotId slot);
  /// Ends the world if a message still borrows memory. Called before that memory ends by an exception.
  void stop_borrowing(int to, std::uint64_t number);
  /// Returns the value of an object on this rank, when it is constructed. Throws its error if the constructor has failed.
  Value local(SlotId slot);

  /// Runs the calls of other ranks until ready() is true. Throws Timeout, which names `what`, if `until` comes first. Throws Error if the
  /// call that waits and the awaited result wait for each other.
  void wait(const std::function<bool()>& ready, comm::TimePoint until, const std::function<std::string()>& what, Awaited awaited = {});
  /// Runs the calls that have arrived, without waiting.
  void progress();
  /// Runs the calls of other ranks until rank 0 ends the job.
  void serve();
  /// Ends the job on rank 0. Waits until all calls of all ranks have ended. Throws the error of a one-way call, if there is one.
  void end();
  void abort(const std::string& reason) { courier_.abort(reason); }

 private:
  /// A call on the stack of this rank. It runs, or waits while the calls above it run.
  struct Frame {
    const Call* call;
    Awaited awaited{};
    std::uint64_t wait = 0;  // the number of the wait, if it waits
    std::string cycle{};     // why it would wait for ever, if it would
  };
  /// A search for a cycle.
  struct Probe {
    int initiator;
    std::uint64_t wait;  // of the initiator
    std::uint32_t hops;
    std::string path;
  };
  /// The end of a reference, or a result that is not needed.
  struct Release {
    SlotId slot;
    std::uint64_t weight = 0;  // that is given up
    bool is_reference = false;
    bool is_silent = false;
  };
  struct Early {  // a value that has arrived before this rank expects it
    std::vector<std::byte> values;
    std::vector<std::vector<std::byte>> arrays;
    Outcome outcome;
  };

  std::uint64_t send(int to, const Head& head, Writer values = {}, std::function<void()> sent = {});
  Arrival open(const Message& message);
  Arrival open_call(const Message& message);
  Arrival open_value(const Message& message);
  void bind(const std::shared_ptr<Call>& call, const Awaited& from, Passed passed, std::function<void(Reader&)> read,
            std::shared_ptr<std::shared_ptr<void>> local);
  void arrived(const std::shared_ptr<Call>& call);
  /// Runs visit(object) when the calls of the object that have arrived before have ended. visit returns the call that keeps the object
  /// until it ends, or null.
  void visit(SlotId object, std::function<std::shared_ptr<Call>(Slot&)> visit);
  void forwarded(SlotId slot, int to, bool stays);
  static std::vector<Release> read_releases(const Message& message);
  void released(const Release& release);
  /// Sends the releases for a rank, or for all ranks.
  void send_releases(int owner);
  void send_releases();

  /// Makes the next call of an object ready to run, if the object is free. Runs visits at once.
  void pump(SlotId slot);
  /// Runs one call that is ready. Returns false if there is none.
  bool run_one();
  void run(const std::shared_ptr<Call>& call);
  void end_call(const Call& call);
  void complete(Call& call, Value value, std::optional<Fault> fault);
  /// Looks for a cycle of waiting calls (edge chasing: Chandy, Misra and Haas 1983). `slot`: the result that the last call found waits for.
  /// `path`: the calls found so far, for the message.
  void chase(SlotId slot, Probe probe);
  void chase(const Call& call, Probe probe, int depth);
  void send_probe(const Awaited& awaited, const Probe& probe);
  /// Sends the value of a slot, or its error. `as`: the number under which the other rank expects it.
  void send_result(int to, SlotId slot, SlotId as, const Slot& from, std::uint32_t served);
  /// Returns whether a result stays at its owner until a rank needs it.
  [[nodiscard]] static bool is_large(const Value& value);
  std::optional<Fault> read_value(const Expectation& expectation, Reader& reader) const;
  /// Removes a slot that nothing refers to.
  void drop_if_unused(SlotId slot);
  [[nodiscard]] bool quiet() const;
  /// Adds a run of a method to the statistics, and to the timeline if there is one.
  void ran(const Call& call, comm::TimePoint begin);
  /// Collects the timelines of all ranks, and writes them on rank 0.
  void write_timeline();
  void terminate();

  std::vector<std::string> names_;
  std::unordered_map<SlotId, Slot> slots_;
  std::unordered_map<SlotId, std::deque<Expectation>> expected_;
  std::unordered_map<SlotId, std::deque<Early>> early_;
  std::deque<std::shared_ptr<Call>> ready_;
  std::vector<std::vector<Release>> releases_;  // by rank, to be sent
  std::vector<Frame> frames_;
  std::optional<Fault> pending_;  // the error of a one-way call
  std::unordered_map<std::string_view, MethodStatistics> statistics_;
  std::string timeline_file_;  // empty: calls are not recorded
  comm::TimePoint timeline_begin_{};
  std::vector<CallSpan> timeline_;
  std::uint64_t slots_made_ = 0, waits_ = 0;
  std::int64_t sent_ = 0, handled_ = 0;  // messages
  int calls_ = 0;                        // that have arrived and not ended
  bool ended_ = false;                   // rank 0 has ended the job
  comm::Duration polling_{};
  comm::Any collectives_;
  Courier courier_;  // destroyed first: it borrows memory of the others
};

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/call/source/arrivals.hpp>
#include <pdp/rpc/call/source/core.hpp>
#include <pdp/rpc/call/source/observed.hpp>
#include <pdp/rpc/call/source/running.hpp>
#include <pdp/rpc/call/source/waiting.hpp>
#endif
