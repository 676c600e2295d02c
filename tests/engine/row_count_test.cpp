#include <pdp/comm/self.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/recorded_splits.hpp>
#include <pdp/engine/row_count.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "catch.hpp"

namespace row_count_test {

using pdp::Index;
using Rows = pdp::engine::RowCount<pdp::comm::Self>;
using Split = std::vector<Index>;

static Split split_of(const Rows& rows) { return {rows.split().begin(), rows.split().end()}; }

TEST_CASE("RowCount splits a step by the rows of each share only if they are given", "[engine]") {
  Rows rows;
  rows.begin({3, {3, 0}}, 10);
  CHECK(split_of(rows) == Split{10});
  rows.begin({3, {3, 0}}, 10, Split{3, 7});
  CHECK(split_of(rows) == Split{3, 7});
  CHECK(rows.global().counted == 10);
  rows.begin({3, {3, 0}}, 10);
  CHECK(split_of(rows) == Split{10});
}

namespace {

/// The calls of one of three ranks, of which the others have 4 and 2 rows, shares 0 and 2, and count 1 and 0 of their rows.
struct Others {
  void all_gather(std::span<const Index> own, std::span<Index> all) const {
    constexpr Index others[2][4] = {{4, 0, 1, 3}, {2, 2, 0, 0}};
    std::ranges::copy(own, all.begin());
    for (std::size_t rank = 0; rank < 2; ++rank)
      std::copy_n(others[rank], own.size(), all.begin() + static_cast<std::ptrdiff_t>((rank + 1) * own.size()));
  }
};

}  // namespace

TEST_CASE("RowCount numbers the first row of a share behind those of the shares before it", "[engine]") {
  Rows rows;
  rows.begin({3, {3, 0}}, 10);
  CHECK(rows.first_row(0, 3) == 0);
  CHECK(rows.first_row(1, 3) == 3);
  CHECK(rows.first_row(2, 3) == 6);
  rows.begin({3, {3, 0}}, 10, Split{2, 7, 1});
  CHECK(rows.first_row(1, 3) == 2);
  CHECK(rows.first_row(2, 3) == 9);
  struct Calls {  // ranks 0 and 1 have share 1, ranks 2 and 3 share 0; the second rank of each counts
    void all_gather(std::span<const Index>, std::span<Index> all) const {
      std::ranges::copy(Split{4, 1, 0, 4, 1, 4, 5, 0, 0, 5, 0, 5}, all.begin());
    }
  };
  rows.begin({4, {}}, 0, {}, 4);
  rows.ask(Calls{}, 4, 1);
  CHECK(rows.global().counted == 9);
  CHECK(rows.first_row(1, 2) == 5);
  rows.begin({5, {}}, 0, {}, 4);
  rows.ask(Calls{}, 4, 0);
  CHECK(rows.first_row(0, 2) == 0);
}

TEST_CASE("RowCount lets the ranks count rows that a loss may ignore, although the caller gives their number", "[engine]") {
  Rows rows;
  rows.begin({5, {2, 3}, true}, 11, Split{5, 4, 2}, 3);
  CHECK_FALSE(rows.is_known());
  CHECK(rows.global().counted == 0);
  rows.ask(Others{}, 3, 1);
  CHECK(rows.is_known());
  CHECK(rows.global().counted == 3);
  CHECK(rows.global().ignored == 6);
  CHECK(split_of(rows) == Split{5, 4, 2});  // a recording does not depend on the rows that count
  rows.begin({5, {4, 1}, true}, 0, {}, 3);
  rows.ask(Others{}, 3, 1);
  CHECK(rows.global().counted == 5);
  CHECK(rows.first_row(1, 3) == 4);  // rows that are ignored have numbers, too
  CHECK(split_of(rows) == Split{5, 1, 0, 0, 4, 0, 0, 0, 2, 2, 0, 0});
  rows.begin({5, {5, 0}}, 0, {}, 3);
  rows.ask(Others{}, 3, 1);
  CHECK(rows.global().counted == 6);
  CHECK(rows.global().ignored == 0);
  CHECK(split_of(rows) == Split{5, 1, 5, 4, 0, 1, 2, 2, 0});
}

TEST_CASE("RowCount adds up the weights of the rows of all ranks", "[engine]") {
  struct Calls {
    void all_gather(std::span<const Index> own, std::span<Index> all) const {
      const Split other{4, 0, 1, 3, std::bit_cast<Index>(1.5)};
      std::ranges::copy(own, all.begin());
      std::ranges::copy(other, all.begin() + 5);
    }
  };
  Rows rows;
  rows.begin({5, {4, 0, 2.25}, false, 1, true}, 9, {}, 2);
  CHECK_FALSE(rows.is_known());
  rows.ask(Calls{}, 2, 1);
  CHECK(rows.global().counted == 5);
  CHECK(rows.global().ignored == 3);
  CHECK(rows.global().weight == 3.75);
  CHECK(rows.global().divisor() == 3.75);
  rows.begin({5, {4, 0, 2.25}, false, 1, true}, 0, {}, 2);
  rows.ask(Calls{}, 2, 1);
  CHECK(split_of(rows) == Split{5, 1, 0, 0, 0, 4, 0, 0, 0, 0});  // a recording does not depend on weights
  CHECK(rows.first_row(1, 2) == 4);
  pdp::comm::Self world;
  rows.begin({5, {4, 0, 2.25}, false, 1, true}, 0, {}, 2);
  rows.start(world);
  rows.wait();
  CHECK(rows.global().weight == 2.25);
  rows.begin({5, {5, 0, 0}, false, 1, true}, 0, {}, 1);
  CHECK(rows.global().divisor() == 5);
}

TEST_CASE("RowCount accepts a step in which no row counts, and rejects one without rows", "[engine]") {
  pdp::comm::Self world;
  Rows rows;
  const auto count = [&](const pdp::engine::OwnRows& own) {
    rows.begin(own, 0, {}, 2);
    rows.start(world);
    rows.wait();
    return rows.global();
  };
  CHECK(count({4, {0, 4}, true}).ignored == 4);
  CHECK(count({4, {3, 1}, true}).counted == 3);
  CHECK(count({4, {4, 0}}).counted == 4);
  CHECK_THROWS_AS(count({0, {}, true}), pdp::ConfigError);
  CHECK_THROWS_AS(count({}), pdp::ConfigError);
  rows.begin({4, {1, 3}, true}, 0, {}, 1);  // a rank without others knows its rows
  CHECK(rows.is_known());
  CHECK(rows.global().counted == 1);
  CHECK(split_of(rows) == Split{4});
}

TEST_CASE("RecordedSplits tells steps with equal sums apart by the rows of each share", "[engine]") {
  pdp::engine::RecordedSplits splits;
  CHECK(splits.admit(Split{3, 7}, 3, 0));
  CHECK(splits.admit(Split{4, 6}, 4, 0));
  CHECK(splits.admit(Split{3, 7}, 3, 0));
  CHECK(splits.admit(Split{10}, 5, 0));
  CHECK_THROWS_AS(splits.admit(Split{10}, 4, 0), pdp::ConfigError);
}

}  // namespace row_count_test
