#include <pdp/comm/self.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/recorded_splits.hpp>
#include <pdp/engine/row_count.hpp>

#include <algorithm>
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
  rows.begin(3, 10);
  CHECK(split_of(rows) == Split{10});
  rows.begin(3, 10, Split{3, 7});
  CHECK(split_of(rows) == Split{3, 7});
  CHECK(rows.global() == 10);
  rows.begin(3, 10);
  CHECK(split_of(rows) == Split{10});
}

TEST_CASE("RowCount numbers the first row of a share behind those of the shares before it", "[engine]") {
  Rows rows;
  rows.begin(3, 10);
  CHECK(rows.first_row(0, 3) == 0);
  CHECK(rows.first_row(1, 3) == 3);
  CHECK(rows.first_row(2, 3) == 6);
  rows.begin(3, 10, Split{2, 7, 1});
  CHECK(rows.first_row(1, 3) == 2);
  CHECK(rows.first_row(2, 3) == 9);
  rows.begin(3, 0);
  struct Calls {  // ranks 0 and 1 have share 1, ranks 2 and 3 share 0; the second rank of each counts
    void all_gather(std::span<const Index>, std::span<Index> all) const {
      std::ranges::copy(Split{4, 0, 1, 4, 4, 1, 5, 0, 0, 5, 5, 0}, all.begin());
    }
  };
  rows.ask(Calls{}, 4, 4, 1);
  CHECK(rows.global() == 9);
  CHECK(rows.first_row(0, 2) == 0);
  CHECK(rows.first_row(1, 2) == 5);
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
