#include <pdp/core/error.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/image_changes.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/random_crop.hpp>
#include <pdp/data/training_epoch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace image_changes_test {

namespace data = pdp::data;
namespace random = pdp::random;
using pdp::Index, pdp::Shape;

namespace {

constexpr Index channels = 2, height = 3, width = 5;
constexpr std::size_t pixels = channels * height * width;
const Shape shape{channels, height, width};

/// Returns an image in which all values differ, and none is 0.
std::vector<float> image() {
  std::vector<float> values(pixels);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}
/// Returns the value of an image, or the background outside it.
float value(const std::vector<float>& of, Index channel, Index row, Index column, float background) {
  const bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
  return is_inside ? of[pdp::as_size((channel * height + row) * width + column)] : background;
}
/// Returns the image that has value(channel, row, column) everywhere.
template <class Value>
std::vector<float> image_of(const Value& value_at) {
  std::vector<float> values;
  for (Index channel = 0; channel < channels; ++channel)
    for (Index row = 0; row < height; ++row)
      for (Index column = 0; column < width; ++column) values.push_back(value_at(channel, row, column));
  return values;
}

/// Returns a set of `count` images; value i of image n is 1000 n + i.
data::InMemory<std::int32_t> images(Index count) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (Index n = 0; n < count; ++n) {
    for (std::size_t i = 0; i < pixels; ++i) x.push_back(static_cast<float>(1000 * n + pdp::as_index(i)));
    y.push_back(static_cast<std::int32_t>(n));
  }
  return {shape, x, y};
}

}  // namespace

TEST_CASE("RandomShift moves images by each distance equally often and fills in the background", "[data][images]") {
  for (const Index most : {0, 1, 2, 7}) {
    const data::RandomShift change{shape, most, 0.25f};
    std::map<std::pair<Index, Index>, int> found;
    const int draws = most <= 2 ? 2000 : 50;
    for (int draw = 0; draw < draws; ++draw) {
      const random::Key key = random::make_key(7, draw);
      std::vector<float> moved = image(), again = image();
      change(key, moved);
      change(key, again);
      REQUIRE(moved == again);
      for (Index down = -most; down <= most; ++down)
        for (Index right = -most; right <= most; ++right)
          if (moved ==
              image_of([&](Index channel, Index row, Index column) { return value(image(), channel, row - down, column - right, 0.25f); }))
            ++found[{down, right}];
    }
    const Index distances = 2 * most + 1;
    int all = 0;
    for (const auto& [place, times] : found) all += times;
    if (most <= 2) {  // with larger distances, several leave nothing of the image
      CHECK(all == draws);
      CHECK(pdp::as_index(found.size()) == distances * distances);
      const double each = static_cast<double>(draws) / static_cast<double>(distances * distances);
      for (const auto& [place, times] : found) CHECK(std::abs(times - each) <= 5 * std::sqrt(each));
    }
    CHECK(all >= draws);
  }
}

TEST_CASE("RandomFlip mirrors images on one axis with its probability", "[data][images]") {
  const auto mirrored =
      image_of([](Index channel, Index row, Index column) { return value(image(), channel, row, width - 1 - column, 0); });
  const auto upside_down =
      image_of([](Index channel, Index row, Index column) { return value(image(), channel, height - 1 - row, column, 0); });
  const auto flips = [&](const data::RandomFlip& change, const std::vector<float>& expected) {
    int count = 0;
    for (int draw = 0; draw < 400; ++draw) {
      std::vector<float> found = image();
      change(random::make_key(3, draw), found);
      if (found == expected)
        ++count;
      else
        REQUIRE(found == image());
    }
    return count;
  };
  CHECK(flips(data::RandomFlip{shape, 0}, mirrored) == 0);
  CHECK(flips(data::RandomFlip{shape, 1}, mirrored) == 400);
  CHECK(std::abs(flips(data::RandomFlip{shape}, mirrored) - 200) < 60);
  CHECK(std::abs(flips(data::RandomFlip{shape, 0.25, data::RandomFlip::Axis::vertical}, upside_down) - 100) < 50);
}

TEST_CASE("RandomCrop gives the middle of images, and in a training each part equally often", "[data][images]") {
  const data::RandomCrop parts{images(4), 2, 3};
  CHECK(parts.size() == 4);
  CHECK(parts.sample_shape() == Shape{2, 2, 3});
  const auto part = [](Index n, Index down, Index right) {
    std::vector<float> values;
    for (Index channel = 0; channel < channels; ++channel)
      for (Index row = down; row < down + 2; ++row)
        for (Index column = right; column < right + 3; ++column)
          values.push_back(static_cast<float>(1000 * n + (channel * height + row) * width + column));
    return values;
  };
  const std::vector<Index> which{3, 1};
  std::vector<float> x(2 * 12);
  std::vector<std::int32_t> y(2);
  parts.gather(which, x, y);
  CHECK(y == std::vector<std::int32_t>{3, 1});
  CHECK(std::vector<float>(x.begin(), x.begin() + 12) == part(3, 0, 1));
  CHECK(std::vector<float>(x.begin() + 12, x.end()) == part(1, 0, 1));

  std::map<std::pair<Index, Index>, int> found;
  for (Index epoch = 0; epoch < 100; ++epoch) {
    data::gather_in_epoch(parts, which, x, y, data::TrainingEpoch{5, epoch});
    for (Index down = 0; down <= 1; ++down)
      for (Index right = 0; right <= 2; ++right) {
        found[{down, right}] += std::vector<float>(x.begin(), x.begin() + 12) == part(3, down, right) ? 1 : 0;
        found[{down, right}] += std::vector<float>(x.begin() + 12, x.end()) == part(1, down, right) ? 1 : 0;
      }
  }
  int all = 0;
  for (const auto& [place, times] : found) {
    CHECK((times > 10 && times < 70));
    all += times;
  }
  CHECK(all == 200);
  const data::RandomCrop whole{images(2), height, width};
  std::vector<float> same(2 * pixels);
  data::gather_in_epoch(whole, std::vector<Index>{0, 1}, same, y, data::TrainingEpoch{5, 3});
  CHECK(same[0] == 0);
  CHECK(same[pixels + 7] == 1007);
}

TEST_CASE("RandomCrop cuts images that another function has changed", "[data][images]") {
  const data::Augmented brighter{images(3), [](random::Key, std::span<float> sample) {
                                   for (float& each : sample) each += 0.5f;
                                 }};
  const data::RandomCrop parts{brighter, 1, 1};
  std::vector<float> x(channels);
  std::vector<std::int32_t> y(1);
  data::gather_in_epoch(parts, std::vector<Index>{2}, x, y, data::TrainingEpoch{5, 1});
  CHECK(x[0] - 2000 - static_cast<float>(static_cast<int>(x[0]) - 2000) == 0.5f);
  parts.gather(std::vector<Index>{2}, x, y);
  CHECK(x[0] == 2000 + 7);
}

TEST_CASE("Changes of images refuse shapes and options that do not fit", "[data][images]") {
  CHECK_THROWS_WITH((data::RandomShift{Shape{784}, 2}),
                    "data::RandomShift was given samples of shape [784]; expected images: [channels, height, width] or [height, width]");
  CHECK_THROWS_AS((data::RandomFlip{Shape{}}), pdp::ShapeError);
  CHECK_THROWS_AS((data::RandomFlip{Shape{1, 2, 3, 4}}), pdp::ShapeError);
  CHECK_THROWS_WITH((data::RandomShift{Shape{28, 28}, -1}), "data::RandomShift was given the distance -1; give it 0 pixels or more");
  CHECK_THROWS_WITH((data::RandomFlip{Shape{28, 28}, 1.5}), "data::RandomFlip was given the probability 1.5; give it one from 0 to 1");
  std::vector<float> small(5);
  CHECK_THROWS_WITH((data::RandomShift{Shape{2, 3}, 1}(random::Key{}, small)),
                    "data::RandomShift changes images of shape [1, 2, 3], but was called with one of 5 values; give it the shape of the "
                    "dataset's samples");
  CHECK_THROWS_WITH((data::RandomCrop{images(2), 4, 2}),
                    "data::RandomCrop was asked for parts of 4 x 2 pixels of images of 3 x 5; give it a size from 1 x 1 to that of the "
                    "images");
  CHECK_THROWS_AS((data::RandomCrop{images(2), 0, 2}), pdp::ShapeError);
}

}  // namespace image_changes_test
