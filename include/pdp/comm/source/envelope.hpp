#pragma once

/// Definitions for pdp/comm/envelope.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/operation.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE std::string describe(const Envelope& call) {
  if (call.verb == Verb::barrier || call.verb == Verb::split) return name(call.verb);
  std::string words = text(name(call.verb), " of ", call.count, " ", name(call.type));
  if (call.reduction != Reduction::none && call.reduction != Reduction::sum) words += text(" (", name(call.reduction), ")");
  if (call.verb == Verb::send)
    words += text(" with tag ", call.tag);
  else if (call.root >= 0)
    words += text(" with root ", call.root);
  return words;
}

PDP_INLINE Failure mismatch(const Envelope& one, int rank_of_one, const Envelope& other, int rank_of_other) {
  const bool collective = one.tag == Envelope::collective;
  const auto number = [collective](const Envelope& call) {
    return collective ? text(" (call ", call.sequence, " of its group)") : std::string{};
  };
  Envelope later = one;
  later.earlier = other.earlier;
  later.bytes = other.bytes;  // messages of one call may differ in length
  const std::string calls =
      one.earlier != other.earlier && later == other
          ? text("rank ", rank_of_one, " and rank ", rank_of_other, " both make ", describe(one), number(one),
                 ", but their earlier calls differ")
          : text(describe(one), " on rank ", rank_of_one, number(one), ", ", describe(other), " on rank ", rank_of_other, number(other));
  return {Failure::Kind::mismatch, rank_of_one,
          text("ranks of one group have made different calls: ", calls,
               "; every rank must make the same calls in the same order, with the same sizes, types and roots")};
}

}  // namespace pdp::comm
