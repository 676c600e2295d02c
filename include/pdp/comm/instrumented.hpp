#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/backend/wrapper.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The calls of one verb that a rank has made, and their cost.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the caller's memory that the calls worked on; for calls with shards, of the whole
  Duration time{};          // spent in the calls and in their waits
};

/// One entry for each verb.
using TrafficTable = std::array<Traffic, verbs>;

namespace detail {

/// Returns the bytes of the caller's memory that a call works on, in a group of `ranks` ranks.
std::size_t bytes_of(const Request& request, int ranks);

/// A timer that adds the time from its construction to its destruction to `traffic`.
class Stopwatch {
 public:
  explicit Stopwatch(Traffic& traffic);
  Stopwatch(Stopwatch&&) = delete;
  ~Stopwatch();

 private:
  Traffic& traffic_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace detail

/// Calls of another backend, with counters. A group counts into the table of the world that it was split from.
template <Calls C>
class InstrumentedCalls : public WrappedCalls<C> {
  using WrappedCalls<C>::inner_;

 public:
  using WrappedCalls<C>::size;

  class [[nodiscard]] Work {
   public:
    Work() = default;
    [[nodiscard]] bool pending() const { return inner_.pending(); }
    [[nodiscard]] bool done() {
      if (!pending()) return true;
      const detail::Stopwatch stopwatch{*traffic_};
      return inner_.done();
    }
    void wait() {
      if (!pending()) return;
      const detail::Stopwatch stopwatch{*traffic_};
      inner_.wait();
    }

   private:
    friend class InstrumentedCalls;
    Work(typename C::Work inner, Traffic& traffic) : inner_{std::move(inner)}, traffic_{&traffic} {}

    typename C::Work inner_;
    Traffic* traffic_ = nullptr;
  };

  explicit InstrumentedCalls(C inner, std::shared_ptr<TrafficTable> table = std::make_shared<TrafficTable>())
      : WrappedCalls<C>{std::move(inner)}, table_{std::move(table)} {}

  [[nodiscard]] const TrafficTable& table() const { return *table_; }
  void clear() { *table_ = {}; }

  Work start(const Request& request) {
    Traffic& traffic = (*table_)[as_size(request.verb)];
    ++traffic.calls;
    traffic.bytes += detail::bytes_of(request, size());
    const detail::Stopwatch stopwatch{traffic};
    return {inner_.start(request), traffic};
  }
  [[nodiscard]] InstrumentedCalls split(int color, int key) { return InstrumentedCalls{inner_.split(color, key), table_}; }

 private:
  std::shared_ptr<TrafficTable> table_;
};

/// A communicator that counts the calls of another one, their bytes and their time: Instrumented{std::move(world)}.
template <class Comm>
class Instrumented : public BasicCommunicator<InstrumentedCalls<typename Comm::Erased>> {
  using Base = BasicCommunicator<InstrumentedCalls<typename Comm::Erased>>;

 public:
  explicit Instrumented(Comm world) : Base{InstrumentedCalls{world.release()}} {}
  Instrumented(Base&& group) : Base{std::move(group)} {}
  [[nodiscard]] Instrumented split(int color, int key) { return Base::split(color, key); }

  /// Returns the traffic of this rank, including that of groups split from this one. A received message counts as Verb::send.
  [[nodiscard]] const Traffic& traffic(Verb verb) const { return this->erased().table()[as_size(verb)]; }
  /// Sets all counters to zero, including those of groups split from this one.
  void clear_traffic() { this->erased().clear(); }
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/instrumented.hpp>
#endif
