#include <pdp/data/dataset.hpp>

#include <array>

#include "catch.hpp"
#include "data/files.hpp"

namespace data = pdp::data;
using pdp::Index;

namespace {

/// Five samples of two values. gather() checks its arguments only.
struct Pairs {
  using Target = std::int32_t;
  [[nodiscard]] Index size() const { return 5; }
  [[nodiscard]] pdp::Shape sample_shape() const { return pdp::Shape{2}; }
  [[nodiscard]] pdp::Shape target_shape() const { return pdp::Shape{1}; }
  void gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const { data::check_gather(*this, which, x, y); }
};

struct NoGather : Pairs {
  void gather() const {}
};

struct OddTarget : Pairs {
  using Target = char;
};

struct MutableGather : Pairs {
  void gather(std::span<const Index>, std::span<float>, std::span<Target>) {}
};

static_assert(data::Dataset<Pairs>);
static_assert(!data::Dataset<NoGather>);
static_assert(!data::Dataset<OddTarget>);
static_assert(!data::Dataset<MutableGather>, "the loader gathers on its own thread: gather is const");
static_assert(!data::Dataset<int>);

}  // namespace

TEST_CASE("check_gather accepts spans that fit and reports the mismatch of others", "[data]") {
  const std::array<Index, 3> which{4, 0, 4};
  const std::array<Index, 3> outside{4, 5, 0};
  std::array<float, 6> x{};
  std::array<std::int32_t, 3> y{};
  const Pairs pairs;
  const auto gather = [&](std::span<const Index> numbers, std::size_t values, std::size_t targets) {
    return files::message_of<pdp::ShapeError>([&] { pairs.gather(numbers, std::span{x}.first(values), std::span{y}.first(targets)); });
  };

  CHECK(!gather(which, 6, 3));
  CHECK(!gather({}, 0, 0));
  CHECK_THAT(gather(which, 5, 3).value(), Contains("expected 6 elements in x") && Contains("found 5"));
  CHECK_THAT(gather(which, 6, 2).value(), Contains("expected 3 elements in y") && Contains("found 2"));
  CHECK_THAT(gather(outside, 6, 3).value(), Contains("from 0 to 4") && Contains("found 5"));
}
