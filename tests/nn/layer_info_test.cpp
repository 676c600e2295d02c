#include <pdp/nn/layer_info.hpp>

#include <pdp/nn/activation.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"

namespace layer_info_test {

namespace nn = pdp::nn;

TEST_CASE("layer_infos names the layers of a model and counts their parameters without padding", "[nn]") {
  const auto all =
      nn::layer_infos(nn::Sequential{nn::Repeat{2, nn::Sequential{nn::Linear{3, 3}, nn::Relu{}}}, nn::Residual{nn::Linear{3, 3, false}}});
  REQUIRE(all.size() == 5);
  const char* const names[] = {"0.0.0 Linear", "0.0.1 Relu", "0.1.0 Linear", "0.1.1 Relu", "1 Residual"};
  const pdp::Index elements[] = {12, 0, 12, 0, 9};
  for (std::size_t at = 0; at < all.size(); ++at) {
    CHECK(all[at].text() == names[at]);
    CHECK(all[at].parameters == elements[at]);
    CHECK(all[at].whole == elements[at]);
  }
  CHECK(nn::layer_infos(nn::Linear{2, 1}).front().text() == "Linear");
}

namespace {

/// A layer with a weight of 3 elements and a buffer of 2.
struct WithBuffer : nn::NoParameters {
  static constexpr const char* name = "WithBuffer";
  [[nodiscard]] constexpr pdp::Index input_elements() const { return 3; }
  [[nodiscard]] constexpr pdp::Shape output(const pdp::Shape& input) const { return input; }
  [[nodiscard]] constexpr pdp::Index parameter_elements() const { return 2 * nn::padded_parameter(3); }
  template <class Visit>
  constexpr void parameters(const nn::Path& path, pdp::Index offset, Visit&& visit) const {
    visit(nn::Parameter{.layer = path, .name = "weight", .rows = 3, .offset = offset});
    visit(nn::Parameter{.layer = path, .name = "mean", .rows = 2, .offset = offset + nn::padded_parameter(3), .is_buffer = true});
  }
};

}  // namespace

TEST_CASE("layer_infos counts buffers apart", "[nn]") {
  const auto all = nn::layer_infos(nn::Sequential{WithBuffer{}, nn::Linear{3, 1}});
  CHECK(all.front().parameters == 5);
  CHECK(all.front().buffers == 2);
  CHECK(all.back().buffers == 0);
}

TEST_CASE("layer_infos tells the part of a divided layer from the whole", "[nn]") {
  const nn::Sequential model{nn::ColumnParallel{3, 10}.divided({1, 5}, {})};
  const auto all = nn::layer_infos(model);
  CHECK(all.front().parameters == 3 * 2 + 2);
  CHECK(all.front().whole == 3 * 10 + 10);
}

}  // namespace layer_info_test
