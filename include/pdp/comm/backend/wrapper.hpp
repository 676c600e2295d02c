#pragma once

#include <span>
#include <string>
#include <utility>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/traits.hpp>

namespace pdp::comm {

/// A base class for Calls that wrap the Calls of another backend. Forwards the operations below unchanged.
template <Calls C>
class WrappedCalls {
 public:
  static constexpr Traits traits = traits_of<C>;
  static constexpr bool records_calls = false;

  [[nodiscard]] int rank() const { return inner_.rank(); }
  [[nodiscard]] int size() const { return inner_.size(); }
  [[nodiscard]] Duration deadline() const { return inner_.deadline(); }
  void deadline(Duration duration) { inner_.deadline(duration); }
  void progress() { inner_.progress(); }
  void wait_for_progress(TimePoint until) requires WaitsForProgress<C> { inner_.wait_for_progress(until); }
  void abort(const std::string& reason) { inner_.abort(reason); }
  Region allocate(std::size_t bytes) { return allocate_region(inner_, bytes); }
  [[nodiscard]] bool shares_memory() const { return comm::shares_memory(inner_); }
  void exchange_records(std::span<const std::byte> mine, std::span<std::byte> all) requires ExchangesRecords<C> {
    inner_.exchange_records(mine, all);
  }
  void begin_group() requires GroupsCalls<C> { inner_.begin_group(); }
  void end_group() requires GroupsCalls<C> { inner_.end_group(); }

 protected:
  explicit WrappedCalls(C inner) : inner_{std::move(inner)} {}

  C inner_;
};

}  // namespace pdp::comm
