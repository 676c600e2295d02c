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

TEST_CASE("layer_infos tells the part of a divided layer from the whole", "[nn]") {
  const nn::Sequential model{nn::ColumnParallel{3, 10}.divided({1, 5}, {})};
  const auto all = nn::layer_infos(model);
  CHECK(all.front().parameters == 3 * 2 + 2);
  CHECK(all.front().whole == 3 * 10 + 10);
}

}  // namespace layer_info_test
