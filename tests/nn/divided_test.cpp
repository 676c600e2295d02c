#include <pdp/nn/divided.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

#include "catch.hpp"
#include "nn/gradient_check.hpp"

namespace nn = pdp::nn;
using namespace pdp::nn;
using pdp::Index;
using pdp::Shape;

// The placement of tensors is part of the type of a model.
static_assert(nn::placement_after<Linear>(Placement::invariant) == Placement::invariant);
static_assert(nn::placement_after<Linear>(Placement::sharded) == Placement::misfit);
static_assert(nn::placement_after<Relu>(Placement::sharded) == Placement::sharded &&
              nn::placement_after<Relu>(Placement::partial) == Placement::misfit);
static_assert(nn::placement_after<Flatten>(Placement::replicated) == Placement::replicated);
using Pair = Sequential<Replicate, ColumnParallel, Tanh, RowParallel, AllReduce>;
static_assert(nn::placement_after<Pair>(Placement::invariant) == Placement::invariant);
static_assert(nn::placement_after<Pair>(Placement::sharded) == Placement::misfit);
static_assert(nn::placement_after<Repeat<Pair>>(Placement::unknown) == Placement::invariant);
static_assert(nn::placement_after<Sequential<Tanh, Relu>>(Placement::sharded) == Placement::sharded);
static_assert(nn::placement_after<MultilayerPerceptron<Tanh>>(Placement::partial) == Placement::misfit);
static_assert(nn::placement_after<Divided<Pair>>(Placement::invariant) == Placement::unknown);

namespace {

template <class Model>
std::vector<std::string> layers(const Model& model) {
  std::vector<std::string> found;
  nn::for_each_leaf(model, {}, [&]<class L>(const L&, const Path& at) { found.push_back(at.str() + " " + L::name); });
  return found;
}

/// Returns how many parts of the model hold each element of each parameter, by name and in file order.
template <class Model>
std::map<std::string, std::vector<int>> holders(const Model& model, int parts) {
  std::map<std::string, std::vector<int>> found;
  for (int part = 0; part < parts; ++part)
    nn::for_each_leaf(Divided{model, {part, parts}, Output::may_be_sharded}, {}, [&](const auto& layer, const Path& at) {
      layer.parameters(at, 0, [&](const Parameter& parameter) {
        auto& each = found[parameter.full_name()];
        each.resize(static_cast<std::size_t>(parameter.file_elements()));
        for (Index e = 0; e < parameter.elements(); ++e) ++each.at(static_cast<std::size_t>(parameter.file_element(e)));
      });
    });
  return found;
}

}  // namespace

TEST_CASE("Divided cuts the first of two Linear layers by its outputs and the second by its inputs", "[nn][tensor]") {
  const Sequential model{Flatten{}, Linear{8, 4}, Relu{}, Sequential{Tanh{}, Linear{4, 6}}, Relu{}, Linear{6, 2}};
  CHECK(layers(Divided{model, {1, 2}, Output::whole}) == std::vector<std::string>{"0 Flatten", "1 Replicate", "1 ColumnParallel", "2 Relu",
                                                                                  "3.0 Tanh", "3.1 RowParallel", "3.1 AllReduce", "4 Relu",
                                                                                  "5 Linear"});
  CHECK(layers(Divided{model, {1, 2}, Output::may_be_sharded}).back() == "5 ColumnParallel");
  CHECK(layers(Divided{model, {0, 1}, Output::may_be_sharded}) == layers(model));
  const Sequential odd_classes{Linear{8, 4}, Relu{}, Linear{4, 4}, Relu{}, Linear{4, 3}};
  CHECK(layers(Divided{odd_classes, {0, 2}, Output::may_be_sharded}).back() == "4 Linear");
  const Sequential parted{Linear{8, 8}, Residual{Linear{8, 8}}, Linear{8, 8}, Relu{}, Linear{8, 8}, Relu{}};
  CHECK(layers(Divided{parted, {1, 2}, Output::may_be_sharded}) == std::vector<std::string>{"0 Linear", "1 Residual", "2 Replicate",
                                                                                            "2 ColumnParallel", "3 Relu", "4 RowParallel",
                                                                                            "4 AllReduce", "5 Relu"});
}

TEST_CASE("Divided gives each element to one part, and the bias of a RowParallel to all parts", "[nn][tensor]") {
  const Index in = GENERATE(as<Index>{}, 4, 12), hidden = GENERATE(as<Index>{}, 4, 20);
  for (const int parts : {1, 2, 4}) {
    const auto found = holders(MultilayerPerceptron<Tanh>{{in, hidden, 3, hidden}}, parts);
    REQUIRE(found.size() == 6);
    for (const auto& [name, each] : found) {
      INFO(name);
      CHECK(std::set<int>(each.begin(), each.end()) == std::set<int>{name == "2.bias" ? parts : 1});
    }
  }
}

TEST_CASE("The outline of a Divided model is the same on all ranks and lists their exchanges", "[nn][tensor]") {
  const Sequential model{Linear{8, 4}, Relu{}, Linear{4, 6}, Relu{}, Linear{6, 2}};
  for (int part = 0; part < 2; ++part) {
    const Outline outline = nn::outline(Divided{model, {part, 2}, Output::may_be_sharded}, Shape{8});
    REQUIRE(outline.size() == 8);
    CHECK(outline.width(2) == 2);
    CHECK(outline.width(4) == 6);
    CHECK(outline.width(8) == 1);
    CHECK(outline.output_is_sharded);
    CHECK(outline.layers[0].exchange == Exchange::gradient_of_input);
    CHECK(outline.layers[4].exchange == Exchange::output);
    CHECK(outline.layers[6].exchange == Exchange::gradient_of_input);
  }
  const Outline whole = nn::outline(Divided{model, {0, 1}, Output::may_be_sharded}, Shape{8});
  CHECK(whole.size() == 5);
  CHECK_FALSE(whole.output_is_sharded);
}

TEST_CASE("The gradients of undivided tensor-parallel layers equal central differences", "[nn][gradient][tensor]") {
  const Index rows = GENERATE(as<Index>{}, 0, 1, 5);
  gradient_check::check_model(Sequential{Replicate{}, ColumnParallel{7, 5}, Tanh{}, RowParallel{5, 3}, AllReduce{}}, Shape{7}, rows);
  gradient_check::check_model(Sequential{Replicate{}, ColumnParallel{.in = 3, .out = 4, .bias = false}}, Shape{3}, rows);
}

TEST_CASE("Divided and nn::outline reject models that cannot be divided, with the reason", "[nn][tensor][bad input]") {
  const Sequential model{Linear{8, 4}, Relu{}, Linear{4, 6}};
  CHECK_THROWS_WITH((Divided{model, {0, 3}, Output::whole}), Contains("layer 0 (Linear) has 4 outputs") && Contains("multiple of 3"));
  CHECK_THROWS_WITH((Divided{Sequential{RowParallel{4, 6}}, {0, 3}, Output::whole}), Contains("layer 0 (RowParallel) has 4 inputs"));
  CHECK_THROWS_WITH((Divided{model, {2, 2}, Output::whole}), Contains("found index 2 of 2 parts"));
  CHECK_THROWS_WITH((Divided{Sequential{Linear{4, 4}}, {0, 2}, Output::whole}),
                    Contains("tensor parallelism needs two nn::Linear with only elementwise layers between them"));
  CHECK_THROWS_WITH(nn::outline(Divided{Sequential{Replicate{}, ColumnParallel{8, 4}, RowParallel{4, 4}}, {0, 2}, Output::whole}, Shape{8}),
                    Contains("the model's output is partial") && Contains("nn::AllReduce"));
  CHECK_THROWS_WITH(nn::outline(Sequential{ColumnParallel{8, 4}}, Shape{8}), Contains("layer 0 (ColumnParallel)") && Contains("invariant"));
  CHECK_THROWS_WITH(nn::outline(Sequential{Replicate{}, Relu{}}, Shape{8}),
                    Contains("replicated") && Contains("remove its last nn::Replicate"));
}
