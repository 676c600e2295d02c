#include <pdp/comm/self.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/recorded_splits.hpp>
#include <pdp/engine/row_count.hpp>

#include <algorithm>
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

TEST_CASE("RecordedSplits tells steps with equal sums apart by the rows of each share", "[engine]") {
  pdp::engine::RecordedSplits splits;
  CHECK(splits.admit(Split{3, 7}, 3, 0));
  CHECK(splits.admit(Split{4, 6}, 4, 0));
  CHECK(splits.admit(Split{3, 7}, 3, 0));
  CHECK(splits.admit(Split{10}, 5, 0));
  CHECK_THROWS_AS(splits.admit(Split{10}, 4, 0), pdp::ConfigError);
}

}  // namespace row_count_test
