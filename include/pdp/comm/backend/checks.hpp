#pragma once

#include <array>
#include <vector>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// A request that a rank has found nothing wrong with.
struct CheckedRequest {
  Envelope envelope;  // without what its group adds: channel, number and digest
  Shards shards;      // of the whole; of all_to_all: that this rank sends
  Shards received;    // of all_to_all
};

/// What a rank of a group finds wrong with a call before it begins: what cannot be right, whatever the other ranks do. All backends say it
/// in the same words, and the group goes on after it.
struct CallChecks {
  /// Memory, used again for each call, for the places where the shards of different sizes begin.
  using Begins = std::vector<std::size_t>;

  int rank = 0;
  int size = 1;

  /// Throws ConfigError for ranks, tags and memory that cannot be meant, ShapeError for sizes and types that do not fit together. The
  /// shards may borrow `begins`.
  [[nodiscard]] CheckedRequest check(const Request& request, std::array<Begins, 2>& begins) const;

 private:
  void root(const Request& request) const;
  void one_type(const Request& request) const;
  void message(const Request& request) const;
  void peer(const char* does, int peer, int tag) const;
  [[nodiscard]] Shards shards(const Request& request, Begins& begins) const;
  void all_to_all(const Request& request, std::array<Begins, 2>& begins, CheckedRequest& checked) const;
  Shards cut(Verb verb, const ErasedSpan* whole, const ErasedSpan* shard, Counts counts, Begins& begins) const;
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/backend/source/checks.hpp>
#endif
