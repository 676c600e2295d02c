#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>

#include <cstdint>
#include <set>
#include <vector>

#include "catch.hpp"

using namespace pdp::comm;

namespace {

const Envelope some{.channel = 7,
                    .sequence = 3,
                    .count = 8,
                    .root = 1,
                    .verb = Verb::reduce,
                    .type = pdp::DType::float32,
                    .reduction = Reduction::sum,
                    .earlier = 5};

/// Envelopes that each differ from `some` in one field that ranks must agree on.
std::vector<Envelope> variations() {
  std::vector<Envelope> others(7, some);
  others[0].sequence = 4;
  others[1].count = 9;
  others[2].root = 0;
  others[3].root = -1;
  others[4].verb = Verb::broadcast;
  others[5].type = pdp::DType::int32;
  others[6].reduction = Reduction::max;
  return others;
}

/// The digest of a history of calls with these counts.
std::uint32_t digest_of(const std::vector<std::uint64_t>& counts) {
  Envelope call = some;
  call.sequence = call.earlier = 0;
  for (const std::uint64_t count : counts) {
    ++call.sequence;
    call.count = count;
    call.earlier = digest(call);
  }
  return call.earlier;
}

}  // namespace

TEST_CASE("digest differs for calls that differ in any field but the bytes of the message", "[comm][envelope]") {
  std::set<std::uint32_t> seen{digest(some)};
  for (const Envelope& other : variations()) CHECK(seen.insert(digest(other)).second);
  Envelope other = some;
  other.earlier = 6;
  CHECK(seen.insert(digest(other)).second);
  other = some;
  other.bytes = 99;
  CHECK(digest(other) == digest(some));
}

TEST_CASE("digest keeps a difference through thousands of equal calls and depends on their order", "[comm][envelope]") {
  std::vector<std::uint64_t> calls(5000, 3);
  const std::uint32_t all_equal = digest_of(calls);
  calls[0] = 4;
  CHECK(digest_of(calls) != all_equal);
  CHECK(digest_of({1, 2, 3, 3}) != digest_of({2, 1, 3, 3}));
  CHECK(digest_of({1, 2}) == digest_of({1, 2}));
}

TEST_CASE("digest is different for each of 400 short histories", "[comm][envelope]") {
  std::set<std::uint32_t> seen;
  for (std::uint64_t one = 0; one < 20; ++one)
    for (std::uint64_t two = 0; two < 20; ++two) seen.insert(digest_of({one, two, 0}));
  CHECK(seen.size() == 400);
}

TEST_CASE("mismatch says whether two calls differ or only calls before them", "[comm][envelope]") {
  for (const Envelope& other : variations()) {
    const std::string words = mismatch(some, 2, other, 4).message;
    CHECK_THAT(words, Contains("reduce of 8 float32 with root 1 on rank 2 (call 3 of its group), ") && Contains("on rank 4 (call "));
  }
  Envelope other = some;
  other.earlier = 6;
  CHECK_THAT(mismatch(some, 2, other, 4).message,
             Contains("rank 2 and rank 4 both make reduce of 8 float32 with root 1 (call 3 of its group), but their earlier calls differ; "
                      "every rank must make the same calls"));
  other.bytes = 99;
  CHECK_THAT(mismatch(some, 2, other, 4).message, Contains("but their earlier calls differ"));
  other.count = 9;
  CHECK_THAT(mismatch(some, 2, other, 4).message, Contains("reduce of 9 float32 with root 1 on rank 4"));
}
