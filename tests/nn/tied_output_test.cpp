#include <pdp/nn/activations.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/frozen.hpp>
#include <pdp/nn/layer_info.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/nn/tied_output.hpp>
#include <pdp/nn/vocabulary_parallel_embedding.hpp>
#include <pdp/nn/vocabulary_parallel_output.hpp>
#include <pdp/testing/gradients.hpp>

#include <vector>

#include "catch.hpp"
#include "nn/gradient_check.hpp"
#include "support.hpp"

namespace tied_output_test {

namespace nn = pdp::nn;
using pdp::Index, pdp::Shape;

TEST_CASE("The gradients of TiedOutput are the derivatives", "[nn][tied][gradient]") {
  for (const Index rows : {1, 3, 7}) {
    gradient_check::check_layer(nn::TiedOutput{5, 3}, 3, rows);
    gradient_check::check_layer(nn::VocabularyParallelOutput{{6, 3}, {.index = 1, .count = 2}}, 3, rows);
  }
  const auto result = pdp::testing::check_gradients(nn::TiedOutput{7, 3}, Shape{4, 3});
  INFO(result.text());
  CHECK(result);
}

namespace {

/// A layer of tokens with a second parameter, as a user may write it.
struct TableAndBias : nn::Embedding {
  using forgets_output = TableAndBias;
  [[nodiscard]] constexpr Index parameter_elements() const { return Embedding::parameter_elements() + nn::padded_parameter(width); }
  template <class Visit>
  constexpr void parameters(const nn::Path& path, Index offset, Visit&& visit) const {
    Embedding::parameters(path, offset, visit);
    visit(nn::Parameter{path, "bias", width, 0, false, offset + Embedding::parameter_elements()});
  }
};

}  // namespace

TEST_CASE("TiedOutput has the name and the initial values of the embedding's parameter", "[nn][tied]") {
  const nn::Sequential model{nn::Sequential{nn::Embedding{9, 4, nn::normal(0.3)}, nn::Linear{4, 4}}, nn::Tanh{}, nn::TiedOutput{9, 4}};
  const auto parameters = nn::parameters_of(model);
  REQUIRE(parameters.size() == 4);
  CHECK(parameters.back().parameter.full_name() == "0.0.weight");
  CHECK(parameters.back().parameter.is_copy);
  CHECK(parameters.back().parameter.tied.str() == "2");
  CHECK(parameters.back().layer == 3);
  CHECK_FALSE(parameters.front().parameter.is_copy);

  const nn::Outline outline = nn::outline(model, Shape{2});
  CHECK(outline.tied_output == 3);
  CHECK(outline.is_tied(0));
  CHECK(outline.is_tied(3));
  CHECK_FALSE(outline.is_tied(1));
  nn::Stage<nn::LeafTypes<std::remove_const_t<decltype(model)>>, pdp::cpu::Cpu, float> stage{model, Shape{2}, {{0, 2}, {2, 4}}, /*seed*/ 3};
  std::vector<std::vector<float>> tables;
  stage.for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
    if (parameter.full_name() == "0.0.weight") tables.emplace_back(values.begin(), values.end());
  });
  REQUIRE(tables.size() == 2);
  CHECK(tables.front() == tables.back());

  const auto infos = nn::layer_infos(model);
  CHECK(infos.front().whole == 36);
  CHECK(infos.back().whole == 0);
}

TEST_CASE("A rank has the same tokens of a divided Embedding and VocabularyParallelOutput", "[nn][tied][divided]") {
  const nn::Sequential model{nn::Embedding{8, 4}, nn::Linear{4, 4}, nn::Tanh{}, nn::Linear{4, 4}, nn::TiedOutput{8, 4}};
  const auto rows_of = [](const auto& parameters) {
    std::vector<Index> rows;
    for (const auto& each : parameters)
      if (each.parameter.full_name() == "0.weight") rows.insert(rows.end(), {each.parameter.rows, each.parameter.row_part.index});
    return rows;
  };
  for (int index = 0; index < 2; ++index) {
    const nn::Divided part{model, {index, 2}, nn::Output::may_be_sharded};
    CHECK(rows_of(nn::parameters_of(part)) == std::vector<Index>{4, index, 4, index});
    CHECK(nn::outline(part, Shape{3}).output_is_sharded);
    // If the loss needs all classes, neither is divided.
    const nn::Divided whole{model, {index, 2}, nn::Output::whole};
    CHECK(rows_of(nn::parameters_of(whole)) == std::vector<Index>{8, 0, 8, 0});
  }
  // Nor if the vocabulary cannot be divided evenly, or an output comes before another layer.
  const nn::Sequential odd{nn::Embedding{9, 4}, nn::Linear{4, 4}, nn::Tanh{}, nn::Linear{4, 4}, nn::TiedOutput{9, 4}};
  CHECK(rows_of(nn::parameters_of(nn::Divided{odd, {1, 2}, nn::Output::may_be_sharded})) == std::vector<Index>{9, 0, 9, 0});
  // Sizes that differ are an error of sizes, not of parts.
  const nn::Sequential other{nn::Embedding{9, 4}, nn::Linear{4, 4}, nn::Tanh{}, nn::Linear{4, 4}, nn::TiedOutput{8, 4}};
  CHECK_THROWS_WITH(nn::outline(nn::Divided{other, {1, 2}, nn::Output::may_be_sharded}, Shape{3}), Contains("has 8 vectors of 4 values"));
  const nn::Sequential inside{nn::Embedding{8, 4}, nn::Linear{4, 4}, nn::Tanh{}, nn::Linear{4, 4}, nn::TiedOutput{8, 4}, nn::Tanh{}};
  CHECK(rows_of(nn::parameters_of(nn::Divided{inside, {1, 2}, nn::Output::may_be_sharded})) == std::vector<Index>{8, 0, 8, 0});
}

TEST_CASE("A TiedOutput that does not fit its Embedding is refused", "[nn][tied]") {
  CHECK_THROWS_WITH(nn::outline(nn::Sequential{nn::Embedding{9, 4}, nn::TiedOutput{8, 4}}, Shape{2}),
                    "layer 1 (TiedOutput) shares the parameter of the model's first layer, but has 8 vectors of 4 values, while that layer "
                    "has 9 of 4; give both the same vocabulary and width");
  CHECK_THROWS_WITH(nn::outline(nn::Sequential{nn::Embedding{9, 4}, nn::Linear{4, 5}, nn::TiedOutput{9, 5}}, Shape{2}),
                    Contains("has 9 vectors of 5 values, while that layer has 9 of 4"));
  CHECK_THROWS_WITH(
      nn::outline(nn::Sequential{nn::Embedding{9, 4}, nn::TiedOutput{9, 4}, nn::Linear{9, 4}, nn::TiedOutput{9, 4}}, Shape{2}),
      "layer 3 (TiedOutput) is the second layer of the model that is tied to its Embedding; a model has at most one, so use a "
      "Linear here");
  CHECK_THROWS_WITH(nn::outline(nn::Sequential{nn::Frozen{nn::Embedding{9, 4}}, nn::TiedOutput{9, 4}}, Shape{2}),
                    "layer 1 (TiedOutput) shares the parameter of the model's first layer, but one of the two is inside an nn::Frozen and "
                    "the other is not; put both into it, or neither");
  CHECK_THROWS_WITH(nn::outline(nn::Sequential{nn::Embedding{8, 4}, nn::Replicate{}.divided({0, 2}, {}),
                                               nn::VocabularyParallelOutput{{8, 4}, {.index = 0, .count = 2}}},
                                Shape{2}),
                    Contains("but has part 0 of 2 of its rows, while that layer has part 0 of 1; divide both, with "
                             "nn::VocabularyParallelEmbedding and nn::VocabularyParallelOutput, or neither"));
  CHECK_THROWS_WITH(nn::outline(nn::Sequential{TableAndBias{{9, 4}}, nn::TiedOutput{9, 4}}, Shape{2}),
                    Contains("but that layer holds it in another order, divided by columns, or beside others"));
  CHECK_THROWS_WITH((nn::Sequential{nn::Embedding{9, 4}, nn::TiedOutput{9, 5}}),
                    "layer 1 (TiedOutput) expects 5 values a sample, but its input has 4 (shape [..., 4], the output of "
                    "Embedding); make the two equal");
}

}  // namespace tied_output_test
