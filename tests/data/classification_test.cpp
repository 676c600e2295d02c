#include <pdp/data/classification.hpp>
#include <pdp/data/safetensors_classification.hpp>
#include <pdp/data/safetensors_writer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace classification_test {

namespace data = pdp::data;
using pdp::Index;

namespace {

struct Samples {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  bool operator==(const Samples&) const = default;
};

Samples all_of(const data::InMemory<std::int32_t>& set) {
  std::vector<Index> which(static_cast<std::size_t>(set.size()));
  std::iota(which.begin(), which.end(), Index{0});
  Samples all{std::vector<float>(which.size() * static_cast<std::size_t>(set.sample_shape().elements())),
              std::vector<std::int32_t>(which.size())};
  set.gather(which, all.x, all.y);
  return all;
}

struct Written {
  std::vector<Index> train_x{4, 3}, train_y{4}, test_x{2, 3}, test_y{2};
  std::vector<std::int64_t> labels{0, 1, 2, 1};
};

std::string write(const files::TemporaryFolder& folder, const Written& written) {
  const std::string file = folder / "set.safetensors";
  const auto values = [](const std::vector<Index>& shape) {
    std::vector<float> numbers(static_cast<std::size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)));
    std::iota(numbers.begin(), numbers.end(), 0.5f);
    return numbers;
  };
  const std::vector<float> train_x = values(written.train_x), test_x = values(written.test_x);
  const std::vector<std::int64_t> test_y{0, 1};
  const std::vector<data::TensorToWrite> tensors{data::tensor_to_write<float>("train.x", written.train_x, train_x),
                                                 data::tensor_to_write<std::int64_t>("train.y", written.train_y, written.labels),
                                                 data::tensor_to_write<float>("test.x", written.test_x, test_x),
                                                 data::tensor_to_write<std::int64_t>("test.y", written.test_y, test_y)};
  data::write_safetensors(file, tensors);
  return file;
}

}  // namespace

TEST_CASE("make_classification returns the requested sizes, width and classes", "[data]") {
  const auto set = data::make_classification({.samples = 1005, .width = 7, .classes = 4, .seed = 3});
  CHECK(set.classes == 4);
  for (const auto& part : {set.train, set.test}) {
    CHECK(part.size() == 100);
    CHECK(part.sample_shape() == pdp::Shape{7});
    CHECK(part.target_shape() == pdp::Shape{1});
    const Samples samples = all_of(part);
    CHECK(std::set<std::int32_t>(samples.y.begin(), samples.y.end()) == std::set<std::int32_t>{0, 1, 2, 3});
    for (const float each : samples.x) CHECK(std::isfinite(each));
  }
  CHECK_FALSE(all_of(set.train) == all_of(set.test));
}

TEST_CASE("make_classification derives each sample from the seed and its number only", "[data]") {
  const data::SyntheticClassification wanted{.samples = 400, .width = 6, .classes = 3, .seed = 1};
  const Samples train = all_of(data::make_classification(wanted).train);
  CHECK(train == all_of(data::make_classification(wanted).train));
  auto other = wanted;
  other.seed = 2;
  CHECK_FALSE(train == all_of(data::make_classification(other).train));
  other = wanted;
  other.samples = 800;
  Samples more = all_of(data::make_classification(other).train);
  more.x.resize(train.x.size());
  more.y.resize(train.y.size());
  CHECK(train == more);
}

TEST_CASE("make_classification fills half of the dimensions with unit noise and spreads the others wider", "[data]") {
  const auto set = data::make_classification({.samples = 20'000, .width = 8, .classes = 2});
  const Samples train = all_of(set.train);
  int wide = 0;
  for (std::size_t d = 0; d < 8; ++d) {
    double squares = 0;
    for (std::size_t i = d; i < train.x.size(); i += 8) squares += double{train.x[i]} * double{train.x[i]};
    const double deviation = std::sqrt(squares / static_cast<double>(set.train.size()));
    wide += deviation > 1.2 ? 1 : 0;
    if (deviation <= 1.2) CHECK(deviation == Approx(1).epsilon(0.1));
  }
  CHECK(wide == 4);
}

TEST_CASE("make_classification rejects too few samples, a width of 0 and no classes", "[data]") {
  CHECK_THROWS_AS(data::make_classification({.samples = 9}), pdp::ConfigError);
  CHECK_THROWS_AS(data::make_classification({.width = 0}), pdp::ConfigError);
  CHECK_THROWS_WITH(data::make_classification({.classes = 0}), Contains("found 10000 samples of 1024 values in 0 classes"));
}

TEST_CASE("read_classification reads a set from four tensors of a safetensors file", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  const std::string file = write(folder, {});
  const auto set = data::read_classification(file);
  CHECK(set.classes == 3);
  CHECK(data::read_classification(file, 5).classes == 5);
  CHECK(set.train.sample_shape() == pdp::Shape{3});
  CHECK(all_of(set.train) == Samples{{0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f, 9.5f, 10.5f, 11.5f}, {0, 1, 2, 1}});
  CHECK(all_of(set.test) == Samples{{0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f}, {0, 1}});
}

TEST_CASE("read_classification rejects invalid shapes and labels, with what it found", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  const auto refuses = [&](const Written& written, Index classes, const std::string& words) {
    const std::string file = write(folder, written);
    CHECK_THROWS_AS(data::read_classification(file, classes), pdp::FileError);
    CHECK_THROWS_WITH(data::read_classification(file, classes), Contains(file) && Contains(words));
  };
  refuses({.test_x = {2, 4}}, 0, "expected samples of one width, found 3 values in train.x and 4 in test.x");
  refuses({.labels = {0, 1, -2, 1}}, 0, "expected labels from 0 on in train.y, found -2");
  refuses({.labels = {0, 1, std::int64_t{1} << 40, 1}}, 0, "expected labels from 0 on in train.y, found 1099511627776");
  refuses({.labels = {0, 1, 5, 1}}, 5, "expected labels below 5, the outputs of the model, found 5");
  refuses({.train_x = {12}}, 0, "expected train.x of shape [samples, values] and train.y of shape [samples], found 12 and 4 elements");
  refuses({.train_y = {2, 2}}, 0, "expected train.x of shape [samples, values]");
  refuses({.train_x = {3, 3}}, 0, "found 9 and 4 elements");
  CHECK_THROWS_AS(data::read_classification(folder / "none.safetensors"), pdp::FileError);
}

}  // namespace classification_test
