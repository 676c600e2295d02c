#pragma once

/// Definitions for pdp/comm/checked.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/checked.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm::detail {

PDP_INLINE CallComparison::CallComparison(std::shared_ptr<std::optional<Failure>> failure, std::vector<int> ranks)
    : failure_{std::move(failure)}, ranks_{std::move(ranks)}, calls_(ranks_.size()) {}

PDP_INLINE void CallComparison::check() const {
  if (*failure_) (*failure_)->raise();
}

PDP_INLINE Envelope CallComparison::next(const Request& request) {
  check();
  const ErasedSpan& values = has_shards(request.verb) ? request.shard() : request.in;
  const Counts counts = has_shards(request.verb) ? request.counts : Counts{};
  Envelope call{.count = counts.empty() ? values.count : total(counts),
                .root = request.root,
                .verb = request.verb,
                .type = values.type,
                .reduction = request.reducer.reduction};
  if (request.verb == Verb::all_to_all) call.count = request.is_even() ? call.count / calls_.size() : 0;
  call.sequence = ++sequence_;
  call.channel = counts.size();  // a hash of the counts
  for (const std::size_t count : counts) call.channel = (call.channel ^ count) * 0x9e3779b97f4a7c15ULL;
  return call;
}

PDP_INLINE std::span<std::byte> CallComparison::calls() { return std::as_writable_bytes(std::span{calls_}); }

PDP_INLINE void CallComparison::compare() {
  for (std::size_t other = 1; other < calls_.size() && !*failure_; ++other) {
    const Envelope &first = calls_.front(), &theirs = calls_[other];
    if (first == theirs) continue;
    Envelope same_counts = theirs;
    same_counts.channel = first.channel;
    if (first != same_counts) {
      *failure_ = mismatch(first, ranks_.front(), theirs, ranks_[other]);
    } else {
      *failure_ = Failure{
          Failure::Kind::mismatch, ranks_.front(),
          text("ranks of one group passed different counts to one call: ", describe(first), " on rank ", ranks_.front(), " and on rank ",
               ranks_[other], " (call ", first.sequence, " of its group); pass the same list of counts on all ranks")};
    }
  }
  check();
}

}  // namespace pdp::comm::detail
