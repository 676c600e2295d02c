#include <pdp/nn/parameter.hpp>

#include <algorithm>
#include <set>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace nn = pdp::nn;
using nn::Parameter;
using nn::Path;
using pdp::Index;

TEST_CASE("Path::str joins the numbers on the way to a layer with dots", "[nn]") {
  CHECK(Path{}.str().empty());
  CHECK(Path{}.child(3).str() == "3");
  CHECK(Path{}.child(1).child(0).child(12).str() == "1.0.12");
  const Path parent = Path{}.child(4);
  (void)parent.child(5);
  CHECK(parent.str() == "4");
}

TEST_CASE("Path::child rejects a path deeper than max_depth", "[nn]") {
  Path path;
  for (int depth = 0; depth < Path::max_depth; ++depth) path = path.child(depth);
  CHECK(path.str() == "0.1.2.3.4.5.6.7");
  CHECK_THAT(support::message_of<pdp::ConfigError>([&] { (void)path.child(8); }).value(), Contains("nested in more than 8 containers"));
}

TEST_CASE("Parameter::full_name puts the path of the layer before the name, if there is one", "[nn]") {
  CHECK(Parameter{.layer = Path{}.child(0), .name = "weight"}.full_name() == "0.weight");
  CHECK(Parameter{.layer = Path{}.child(2).child(1), .name = "bias"}.full_name() == "2.1.bias");
  CHECK(Parameter{.layer = Path{}, .name = "weight"}.full_name() == "weight");
}

TEST_CASE("Parameter::file_element swaps row and column of a transposed parameter only", "[nn]") {
  const Index rows = GENERATE(as<Index>{}, 1, 3, 17), cols = GENERATE(as<Index>{}, 1, 5, 16);
  const Parameter plain{.rows = rows, .cols = cols}, transposed{.rows = rows, .cols = cols, .transposed = true};
  CHECK(plain.file_shape() == std::vector<Index>{rows, cols});
  CHECK(transposed.file_shape() == std::vector<Index>{cols, rows});

  std::set<Index> places;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < cols; ++c) {
      CHECK(plain.file_element(r * cols + c) == r * cols + c);
      CHECK(transposed.file_element(r * cols + c) == c * rows + r);
      places.insert(transposed.file_element(r * cols + c));
    }
  CHECK(static_cast<Index>(places.size()) == transposed.elements());
}

TEST_CASE("A vector Parameter has one extent and the same order in memory and in a file", "[nn]") {
  const Parameter vector{.rows = 5, .cols = 0};
  CHECK(vector.elements() == 5);
  CHECK(vector.file_shape() == std::vector<Index>{5});
  for (Index i = 0; i < 5; ++i) CHECK(vector.file_element(i) == i);
}
