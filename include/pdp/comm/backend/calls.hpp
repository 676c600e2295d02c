#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <thread>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/region.hpp>
#include <pdp/comm/work.hpp>
#include <pdp/core/copyable.hpp>

namespace pdp::comm {

/// How long a call may wait by default.
inline constexpr Duration default_deadline = std::chrono::minutes{5};

/// One rank of a group and its calls, with the element types erased. A backend provides it, and a wrapper of a backend wraps it.
/// BasicCommunicator builds the typed verbs on it.
///
/// start(request) checks the request and starts the call, which is in flight when start returns. The request itself may be destroyed then.
/// The memory that the request names is borrowed until the Work has been waited for.
template <class C>
concept Calls = Movable<C> &&
    requires(C& calls, const C& observed, const Request& request, int number, Duration duration, const std::string& reason) {
  requires Waitable<typename C::Work>;
  { observed.rank() } -> std::same_as<int>;
  { observed.size() } -> std::same_as<int>;
  { observed.deadline() } -> std::same_as<Duration>;
  calls.deadline(duration);
  calls.progress();
  calls.abort(reason);
  { calls.start(request) } -> std::same_as<typename C::Work>;
  { calls.split(/*color*/ number, /*key*/ number) } -> std::same_as<C>;
};

/// Makes a call and waits until it is complete.
template <Calls C>
void complete(C& calls, Request request) {
  request.waits_at_once = true;
  calls.start(request).wait();
}

/// A backend with memory of its own for the values of its calls (see Region). Every rank of the group requests the same number of bytes.
template <class C>
concept AllocatesRegions = Calls<C> && requires(C& calls, std::size_t bytes) {
  { calls.allocate(bytes) } -> std::same_as<Region>;
};
/// Allocates memory of the backend, or ordinary memory if the backend has none of its own.
template <Calls C>
Region allocate_region(C& calls, std::size_t bytes) {
  if constexpr (AllocatesRegions<C>)
    return calls.allocate(bytes);
  else
    return Region::ordinary(bytes);
}

/// Returns whether every rank of the group can access the memory of all others (see Registered::of).
template <Calls C>
bool shares_memory(const C& calls) {
  if constexpr (requires { calls.shares_memory(); })
    return calls.shares_memory();
  else
    return false;
}

/// A backend in which a rank can wait without waiting for a particular call.
template <class C>
concept WaitsForProgress = Calls<C> && requires(C& calls, TimePoint until) {
  calls.wait_for_progress(until);
};
/// Sleeps until calls in flight may have advanced, at the latest until the given time. A backend that cannot sleep makes progress instead.
template <Calls C>
void wait_for_progress(C& calls, TimePoint until) {
  if constexpr (WaitsForProgress<C>) {
    calls.wait_for_progress(until);
  } else {
    calls.progress();
    std::this_thread::yield();
  }
}

/// A backend with calls that take device memory. Records that pdp itself exchanges are in host memory: exchange_records(mine, all) gathers
/// mine.size() bytes from each rank, in the order of ranks.
template <class C>
concept ExchangesRecords = Calls<C> && requires(C& calls, std::span<const std::byte> mine, std::span<std::byte> all) {
  calls.exchange_records(mine, all);
};
/// Gathers the bytes `mine` of each rank in `all`, in the order of ranks. All ranks pass the same number of bytes.
template <Calls C>
void exchange_records(C& calls, std::span<const std::byte> mine, std::span<std::byte> all) {
  if constexpr (ExchangesRecords<C>)
    calls.exchange_records(mine, all);
  else
    calls.start({.verb = Verb::all_gather, .in = {const_cast<std::byte*>(mine.data()), mine.size()}, .out = {all.data(), all.size()}})
        .wait();
}

/// A backend that carries out calls one after another. It starts those between begin_group() and end_group() together.
template <class C>
concept GroupsCalls = Calls<C> && requires(C& calls) {
  calls.begin_group();
  calls.end_group();
};

}  // namespace pdp::comm
