#pragma once

/// Definitions for pdp/comm/instrumented.hpp; see pdp/core/separate_compilation.hpp.

#include <chrono>
#include <cstddef>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm::detail {

PDP_INLINE std::size_t bytes_of(const Request& request, int ranks) {
  if (request.verb == Verb::send) return request.in.bytes() + request.out.bytes();
  if (!has_shards(request.verb)) return request.in.bytes();
  const ErasedSpan& shard = request.shard();
  return (request.counts.empty() ? shard.count * as_size(ranks) : total(request.counts)) * shard.element;
}

PDP_INLINE Stopwatch::Stopwatch(Traffic& traffic) : traffic_{traffic}, begin_{std::chrono::steady_clock::now()} {}
PDP_INLINE Stopwatch::~Stopwatch() { traffic_.time += std::chrono::steady_clock::now() - begin_; }

}  // namespace pdp::comm::detail
