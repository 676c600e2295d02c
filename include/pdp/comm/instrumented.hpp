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

/// What a rank has spent on the calls of one verb.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the caller's memory that the calls were about: the whole, where there are shards
  Duration time{};          // within the calls and their waits
};

/// One entry for each verb.
using TrafficTable = std::array<Traffic, verbs>;

namespace detail {

/// Bytes of the caller's memory that a call in a group of so many ranks is about.
std::size_t bytes_of(const Request& request, int ranks);

/// Adds the time for which it lives.
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

/// Calls of another backend, counted. A group counts into the table of the world that it was split from.
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

  /// Of this rank, its groups included. A message that is received counts as one that is sent.
  [[nodiscard]] const Traffic& traffic(Verb verb) const { return this->erased().table()[as_size(verb)]; }
  void clear_traffic() { this->erased().clear(); }
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/instrumented.hpp>
#endif
