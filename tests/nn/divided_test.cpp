#include <pdp/nn/divided.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/random.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/pauses.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/softmax.hpp>

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

/// A user's container, whose order of layers is known only at run time.
struct Stack {
  using Leaves = TypeList<RowParallel, Replicate>;
  std::vector<RowParallel> rows;
  std::vector<Replicate> views;

  [[nodiscard]] Index leaves() const { return pdp::as_index(rows.size() + views.size()); }
  template <class Visit>
  void leaf(Index number, Visit&& visit) const {
    for_each_leaf({}, [&](const auto& layer, const Path&) {
      if (number-- == 0) visit(layer);
    });
  }
  template <class Visit>
  void for_each_leaf(const Path& path, Visit&& visit) const {
    Index number = 0;
    for (const RowParallel& each : rows) visit(each, path.child(number++));
    for (const Replicate& each : views) visit(each, path.child(number++));
  }
};

template <class Model>
std::vector<std::string> layers(const Model& model) {
  std::vector<std::string> found;
  nn::for_each_leaf(model, {}, [&]<class L>(const L&, const Path& at) { found.push_back(at.str() + " " + L::name); });
  return found;
}
/// Returns the layers inside the first layer that has blocks.
template <class Model>
std::vector<std::string> layers_inside(const Model& model) {
  std::vector<std::string> found;
  nn::for_each_leaf(model, {}, [&](const auto& layer, const Path&) {
    if (!found.empty()) return;
    if constexpr (requires { layer.block(); })
      found = layers(layer.block());
    else if constexpr (requires { layer.for_each_block([](const auto&) {}); })
      layer.for_each_block([&](const auto& block) {
        for (const std::string& name : layers(block)) found.push_back(name);
      });
  });
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

TEST_CASE("Divided cuts attention by heads, and an embedding and the output by the vocabulary", "[nn][tensor]") {
  using Names = std::vector<std::string>;
  const Sequential model{Embedding{6, 8}, Residual{Sequential{LayerNorm{8}, MultiHeadAttention{8, 2}, Dropout{0.1f}}},
                         Residual{MultiHeadAttention{8, 2}}, LayerNorm{8}, Linear{8, 6}};
  const Divided divided{model, {1, 2}, Output::may_be_sharded};
  CHECK(layers(divided) == Names{"0 VocabularyParallelEmbedding", "0 AllReduce", "1 Residual", "2 Residual", "3 LayerNorm", "4 Replicate",
                                 "4 ColumnParallel"});
  CHECK(layers_inside(divided) == Names{"0 LayerNorm", "1 Replicate", "1 HeadParallelAttention", "1 AllReduce", "2 Dropout"});
  CHECK(layers(Divided{model, {0, 1}, Output::may_be_sharded}) == layers(model));
  CHECK(layers_inside(Divided{model, {0, 1}, Output::may_be_sharded}) == layers_inside(model));
  const Sequential odd{Embedding{7, 8}, Residual{MultiHeadAttention{8, 2}}, Linear{8, 7}};
  CHECK(layers(Divided{odd, {0, 2}, Output::may_be_sharded}) == Names{"0 Embedding", "1 Residual", "2 Linear"});
}

TEST_CASE("Divided cuts two convolutions by their channels, and what lies between them", "[nn][tensor]") {
  using Names = std::vector<std::string>;
  const auto cut = [](const auto& model) { return layers(Divided{model, {1, 2}, Output::whole}); };
  CHECK(cut(Sequential{Conv2d{1, 4, 3}, BatchNorm{4}, Relu{}, MaxPool2d{2}, Conv2d{4, 3, 3}, BatchNorm{3}}) ==
        Names{"0 Replicate", "0 OutputParallelConv2d", "1 BatchNorm", "2 Relu", "3 MaxPool2d", "4 InputParallelConv2d", "4 AllReduce",
              "5 BatchNorm"});
  CHECK(cut(Sequential{Conv2d{1, 4, 3}, GroupNorm{2, 4}, Dropout{0.5f}, Conv2d{4, 3, 3}}).at(4) == "3 InputParallelConv2d");
  const Sequential pair{Conv2d{4, 4, 3}, Relu{}, Conv2d{4, 4, 3}};  // something to divide
  const auto whole = [&](const auto& model) { return cut(Sequential{model, Flatten{}, pair}).front(); };
  CHECK(whole(Sequential{Conv2d{1, 3, 3}, Relu{}, Conv2d{3, 4, 3}}) == "0.0 Conv2d");
  CHECK(whole(Sequential{Conv2d{1, 4, 3}, GroupNorm{1, 4}, Conv2d{4, 4, 3}}) == "0.0 Conv2d");
  CHECK(whole(Sequential{Conv2d{2, 4, 3, {.groups = 2}}, Relu{}, Conv2d{4, 4, 3}}) == "0.0 Conv2d");
  CHECK(whole(Sequential{Conv2d{1, 4, 3}, Softmax{}, Conv2d{4, 4, 3}}) == "0.0 Conv2d");
  const Sequential branches{Sum{Sequential{Conv2d{1, 4, 3}, Relu{}, Conv2d{4, 2, 3}}, Conv2d{1, 2, 5}}};
  CHECK(layers_inside(Divided{branches, {1, 2}, Output::whole}) ==
        Names{"0 Replicate", "0 OutputParallelConv2d", "1 Relu", "2 InputParallelConv2d", "2 AllReduce", " Conv2d"});
  const Sequential joined{Concat{Conv2d{1, 2, 5}, Sequential{Conv2d{1, 4, 3}, Relu{}, Conv2d{4, 2, 3}}}};
  CHECK(layers_inside(Divided{joined, {1, 2}, Output::whole}).at(4) == "2 InputParallelConv2d");
}

TEST_CASE("Divided takes the division inside a Residual that the model defines", "[nn][tensor]") {
  const Sequential model{Residual{Sequential{LayerNorm{8}, Replicate{}, ColumnParallel{8, 16}, Gelu{}, RowParallel{16, 8}, AllReduce{}}},
                         Residual{Sequential{Linear{8, 16}, Gelu{}, Linear{16, 8}}}};
  const Divided divided{model, {1, 2}, Output::may_be_sharded};
  CHECK(layers_inside(divided) ==
        std::vector<std::string>{"0 LayerNorm", "1 Replicate", "2 ColumnParallel", "3 Gelu", "4 RowParallel", "5 AllReduce"});
  const Outline outline = nn::outline(divided, Shape{8});
  CHECK(outline.parts == 2);
  CHECK(outline.layers[0].pauses == 2);
  CHECK(outline.layers[0].exchanges_inside);
  CHECK(outline.layers[1].pauses == 0);
  CHECK_FALSE(outline.layers[1].exchanges_inside);
}

TEST_CASE("The outline of a Divided model lists the sums inside its layers", "[nn][tensor]") {
  const Sequential model{Residual{Sequential{Conv2d{2, 4, 1}, BatchNorm{4}, Relu{}, Conv2d{4, 2, 1}}},
                         Sum{Conv2d{2, 2, 1}, Residual{Sequential{Conv2d{2, 4, 1}, Relu{}, Conv2d{4, 2, 1}}}}};
  for (int part = 0; part < 2; ++part) {
    const Outline outline = nn::outline(Divided{model, {part, 2}, Output::whole}, Shape{2, 3, 3});
    using enum SummedOver;
    const auto kinds = [&](const std::vector<PauseSum>& all) {
      std::vector<SummedOver> found;
      for (const PauseSum& sum : all) found.push_back(sum.over);
      return found;
    };
    CHECK(kinds(outline.forward_sums) == std::vector{nothing, batch, parts, nothing, parts});
    CHECK(kinds(outline.backward_sums) == std::vector{nothing, batch, parts, nothing, parts});
    CHECK(outline.layers[1].first_pause == 3);
    CHECK(outline.sum_of_pause(1, 1, false).count == 18);
    CHECK(outline.sum_of_pause(1, 1, true).count == 18);
    CHECK(outline.layers[0].batch_sums == BatchNorm{2}.batch_sums());
  }
  CHECK(nn::outline(Divided{model, {0, 1}, Output::whole}, Shape{2, 3, 3}).forward_sums.size() == 1);
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

TEST_CASE("Divided gives each element of every kind of layer to one part, apart from what all parts have", "[nn][tensor]") {
  const auto check = [](const auto& model, const std::set<std::string>& whole) {
    for (const int parts : {1, 2, 4}) {
      for (const auto& [name, each] : holders(model, parts)) {
        INFO(name << " of " << parts);
        CHECK(std::set<int>(each.begin(), each.end()) == std::set<int>{whole.contains(name) ? parts : 1});
      }
    }
  };
  check(Sequential{Embedding{12, 16}, Residual{Sequential{LayerNorm{16}, MultiHeadAttention{16, 8, {.key_heads = 4}}}},
                   Residual{MultiHeadAttention{16, 4}}, Linear{16, 12}},
        {"1.0.weight", "1.0.bias", "1.1.out_proj.bias", "2.0.out_proj.bias"});
  check(Sequential{Sum{Sequential{Conv2d{3, 8, {2, 3}}, BatchNorm{8}, Conv2d{8, 2, 2}},
                       Sequential{Conv2d{3, 4, {2, 3}}, GroupNorm{4, 4}, Conv2d{4, 2, 2}}},
                   Linear{5, 4}, Tanh{}, Linear{4, 7}},
        {"0.0.2.bias", "0.1.2.bias", "3.bias"});
}

TEST_CASE("Parts of layers have the initial values of the undivided model", "[nn][tensor]") {
  const Sequential model{Embedding{8, 16}, Residual{Sequential{LayerNorm{16}, MultiHeadAttention{16, 4, {.key_heads = 2}}}},
                         Residual{Sequential{Linear{16, 32}, Gelu{}, Linear{32, 16}}}, Linear{16, 8}};
  const Sequential images{Residual{Sequential{Conv2d{4, 8, 3, {.padding = 1}}, BatchNorm{8}, Conv2d{8, 4, 3, {.padding = 1}}}},
                          Residual{Sequential{Conv2d{4, 2, 1, {.initializer = normal(0.1)}}, Conv2d{2, 4, 1}}}};
  const auto check = [](const auto& whole) {
    std::map<std::string, std::map<Index, double>> expected;
    const auto visit = [](const auto& block, auto&& found) {
      nn::for_each_leaf(block, {}, [&](const auto& layer, const Path& at) {
        layer.parameters(at, 0, [&](const Parameter& parameter) {
          const auto key = pdp::random::make_key(7, std::string_view{parameter.full_name()});
          const std::vector<double> values = parameter.initial_values(key, 0, parameter.elements());
          for (Index i = 0; i < parameter.elements(); ++i)
            found(parameter.full_name(), parameter.file_element(i), values[static_cast<std::size_t>(i)]);
        });
      });
    };
    visit(whole, [&](const std::string& name, Index element, double value) { expected[name][element] = value; });
    for (int part = 0; part < 2; ++part)
      visit(Divided{whole, {part, 2}, Output::may_be_sharded}, [&](const std::string& name, Index element, double value) {
        INFO(name << ' ' << element);
        REQUIRE(expected.at(name).at(element) == value);
      });
  };
  check(model);
  check(images);
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
  gradient_check::check_model(
      Sequential{Residual{Sequential{Replicate{}, ColumnParallel{3, 5}, Tanh{}, RowParallel{5, 3}, AllReduce{}, Tanh{}}}}, Shape{3}, rows);
}

TEST_CASE("Divided and nn::outline reject models that cannot be divided, with the reason", "[nn][tensor][bad input]") {
  const Sequential model{Linear{8, 4}, Relu{}, Linear{4, 6}};
  CHECK_THROWS_WITH((Divided{model, {0, 3}, Output::whole}), Contains("layer 0 (Linear) has 4 outputs") && Contains("multiple of 3"));
  CHECK_THROWS_WITH((Divided{Sequential{RowParallel{4, 6}}, {0, 3}, Output::whole}), Contains("layer 0 (RowParallel) has 4 inputs"));
  CHECK_THROWS_WITH((Divided{Sequential{Linear{6, 6}, Residual{MultiHeadAttention{6, 6, {.key_heads = 2}}}}, {0, 3}, Output::whole}),
                    Contains("layer 1.0 (MultiHeadAttention) has 2 heads of keys") && Contains("multiple of 3"));
  CHECK_THROWS_WITH((Divided{Sequential{OutputParallelConv2d{Conv2d{4, 4, 1, {.groups = 2}}}}, {0, 2}, Output::whole}),
                    Contains("layer 0 (OutputParallelConv2d) has 2 groups") && Contains("leave it whole"));
  CHECK_THROWS_WITH((Divided{Sequential{ChannelParallel{GroupNorm{2, 8}}}, {0, 4}, Output::whole}),
                    Contains("layer 0 (GroupNorm) has 2 groups of channels"));
  CHECK_THROWS_WITH((Residual{Stack{{RowParallel{8, 8}}, {}}}),
                    Contains("layer 0 (RowParallel) does not accept its input, which is invariant"));
  CHECK_THROWS_WITH((Residual{Stack{{}, {Replicate{}}}}), Contains("the output of a block inside Residual") && Contains("nn::AllReduce"));
  CHECK_THROWS_WITH(nn::outline(Sequential{Stack{{}, {Replicate{}}}, OutputParallelConv2d{Conv2d{1, 2, 1}}}, Shape{1, 2, 2}),
                    Contains("divided by channels") && Contains("nn::InputParallelConv2d"));
  CHECK_THROWS_WITH((Divided{model, {2, 2}, Output::whole}), Contains("found index 2 of 2 parts"));
  CHECK_THROWS_WITH(
      (Divided{Sequential{Linear{4, 4}}, {0, 2}, Output::whole}),
      Contains("tensor parallelism needs two nn::Linear with only elementwise layers between them") && Contains("nn::MultiHeadAttention"));
  CHECK_THROWS_WITH(nn::outline(Divided{Sequential{Replicate{}, ColumnParallel{8, 4}, RowParallel{4, 4}}, {0, 2}, Output::whole}, Shape{8}),
                    Contains("the model's output is partial") && Contains("nn::AllReduce"));
  CHECK_THROWS_WITH(nn::outline(Sequential{ColumnParallel{8, 4}}, Shape{8}), Contains("layer 0 (ColumnParallel)") && Contains("invariant"));
  CHECK_THROWS_WITH(nn::outline(Sequential{Replicate{}, Relu{}}, Shape{8}),
                    Contains("replicated") && Contains("remove its last nn::Replicate"));
}
