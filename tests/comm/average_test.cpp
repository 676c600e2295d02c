#include <pdp/comm/thread.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/testing/ranks.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include "catch.hpp"

namespace average_test {

namespace comm = pdp::comm;
using pdp::BFloat16, pdp::Float16;

namespace {

/// Averages one value of each rank by all_reduce and by reduce_scatter. Returns the results on the first and the last rank.
template <class T, class F>
std::vector<T> averages(int size, F&& value) {
  const auto found = pdp::testing::ranks<comm::Thread>(size, [&](comm::Thread& world) {
    std::vector<T> one{value(world.rank())}, whole(static_cast<std::size_t>(size), one.front()), shard(1);
    world.all_reduce(one, comm::Average{});
    world.reduce_scatter(whole, shard, comm::Average{});
    return std::pair{one.front(), shard.front()};
  });
  return {found.front().first, found.back().first, found.front().second, found.back().second};
}

template <class T>
void check_refused(int size) {
  CAPTURE(size, pdp::name(pdp::dtype_of<T>));
  const auto thrown = pdp::testing::errors<comm::Thread>(size, [](comm::Thread& world) {
    std::vector<T> one(1);
    world.all_reduce(one, comm::Average{});
  });
  for (const auto& each : thrown) {
    CHECK(each.template is<pdp::ConfigError>());
    CHECK_THAT(each.what(), Contains(pdp::text("group of ", size, " ranks")) &&
                                Contains(pdp::text(" exactly only up to ", comm::most_averaged<T>, ";")));
  }
}

template <class T>
std::vector<T> divided(std::vector<T> sums, int ranks) {
  comm::divide<T>(reinterpret_cast<std::byte*>(sums.data()), sums.size() * sizeof(T), ranks);
  return sums;
}

}  // namespace

TEST_CASE("Average is exact in the largest group that the element type can count, and throws in larger ones", "[comm]") {
  for (const std::int8_t each : averages<std::int8_t>(127, [](int) { return std::int8_t{1}; })) CHECK(each == 1);
  for (const std::int8_t each : averages<std::int8_t>(127, [](int) { return std::int8_t{-1}; })) CHECK(each == -1);
  check_refused<std::int8_t>(128);
  if (PDP_TEST_SANITIZED) return;  // the time grows with the square of the size
  check_refused<std::int8_t>(200);
  for (const std::byte each : averages<std::byte>(255, [](int) { return std::byte{1}; })) CHECK(each == std::byte{1});
  for (const BFloat16 each : averages<BFloat16>(256, [](int) { return BFloat16{1.0f}; })) CHECK(each == 1.0f);
  check_refused<std::byte>(256);
  check_refused<std::int8_t>(256);
  check_refused<BFloat16>(257);
  static_assert(comm::most_averaged<Float16> == 2048 && comm::most_averaged<float> == 16'777'216);
}

TEST_CASE("Average is correct in a group of 260 ranks for element types that can count to 260", "[comm]") {
  if (PDP_TEST_SANITIZED) return;  // so many threads take minutes
  constexpr int size = 260;
  for (const Float16 each : averages<Float16>(size, [](int rank) { return static_cast<Float16>(rank % 2 == 0 ? 3 : -1); }))
    CHECK(static_cast<float>(each) == 1.0f);
  for (const std::int32_t each : averages<std::int32_t>(size, [](int rank) { return rank; })) CHECK(each == 129);  // 129.5, truncated
  for (const std::int64_t each : averages<std::int64_t>(size, [](int rank) { return std::int64_t{-rank}; })) CHECK(each == -129);
  for (const float each : averages<float>(size, [](int rank) { return static_cast<float>(rank); })) CHECK(each == 129.5f);
}

TEST_CASE("divide rounds towards zero for integers and to nearest for 16-bit floats", "[comm]") {
  for (const int ranks : {1, 2, 3, 7, 100, 127}) {
    std::vector<std::int8_t> sums;
    for (int sum = -128; sum < 128; ++sum) sums.push_back(static_cast<std::int8_t>(sum));
    const auto quotients = divided(sums, ranks);
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK(static_cast<int>(quotients[i]) == static_cast<int>(sums[i]) / ranks);
  }
  for (const int ranks : {1, 3, 2047, 2048}) {
    const std::vector<Float16> sums{static_cast<Float16>(2048), static_cast<Float16>(-65504), static_cast<Float16>(0.1f)};
    const auto quotients = divided(sums, ranks);
    for (std::size_t i = 0; i < sums.size(); ++i)
      CHECK(static_cast<float>(quotients[i]) ==
            static_cast<float>(static_cast<Float16>(static_cast<float>(sums[i]) / static_cast<float>(ranks))));
  }
  CHECK(divided<std::int32_t>({std::numeric_limits<std::int32_t>::min()}, 65'537).front() ==
        std::numeric_limits<std::int32_t>::min() / 65'537);
}

TEST_CASE("Sum and Product of integers wrap around", "[comm]") {
  CHECK(comm::Sum::combine(std::numeric_limits<std::int32_t>::max(), 1) == std::numeric_limits<std::int32_t>::min());
  CHECK(comm::Product::combine(std::numeric_limits<std::int64_t>::max(), std::int64_t{2}) == -2);
  CHECK(comm::Sum::combine(std::int8_t{100}, std::int8_t{100}) == -56);
}

}  // namespace average_test
