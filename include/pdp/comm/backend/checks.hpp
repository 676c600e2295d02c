#pragma once

#include <array>
#include <vector>

#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// The result of the checks of a request on its rank.
struct CheckedRequest {
  Envelope envelope;  // without the fields that the group adds: channel, number and digest
  Shards shards;      // of the whole; all_to_all: of the values that this rank sends
  Shards received;    // all_to_all: of the values that this rank receives
};

/// The checks of a call on one rank of a group before it begins. They find errors that do not depend on the other ranks. All backends use
/// them, so error messages are the same. The group stays usable after an error.
struct CallChecks {
  /// Memory for the offsets of shards of different sizes, reused for each call.
  using Begins = std::vector<std::size_t>;

  int rank = 0;
  int size = 1;

  /// Checks a request. Throws ConfigError for invalid ranks and tags and for memory that overlaps. Throws ShapeError if sizes or types do
  /// not match. The returned shards may borrow `begins`.
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
