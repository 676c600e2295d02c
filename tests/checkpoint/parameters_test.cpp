#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/safetensors_writer.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/stage.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"

namespace checkpoint = pdp::checkpoint;
namespace nn = pdp::nn;
using pdp::Index, pdp::Shape;

namespace {

constexpr nn::Sequential digits{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}};

template <class Model>
auto stage(const Model& model, const Shape& input, const std::vector<nn::Run>& runs, std::uint64_t seed = 1) {
  return nn::Stage<nn::LeafTypes<Model>, pdp::cpu::Cpu, float>{model, input, runs, seed};
}
auto digits_stage(std::uint64_t seed = 1) { return stage(digits, Shape{784}, {{0, 3}}, seed); }

std::vector<std::string> names(const std::vector<checkpoint::Tensor>& tensors) {
  std::vector<std::string> found;
  for (const auto& tensor : tensors) found.push_back(tensor.name + checkpoint::shape_text(tensor.shape));
  return found;
}

}  // namespace

TEST_CASE("export_parameters returns the names, order and layouts of PyTorch's nn.Sequential", "[checkpoint]") {
  auto made = digits_stage();
  const auto tensors = checkpoint::export_parameters(made);
  CHECK(names(tensors) == std::vector<std::string>{"0.weight[64, 784]", "0.bias[64]", "2.weight[10, 64]", "2.bias[10]"});
  REQUIRE(tensors[0].values.size() == 64 * 784);
  made.for_each_parameter([&](const nn::Parameter& parameter, std::span<float> values) {
    if (parameter.full_name() != "2.weight") return;  // [in, out] in memory
    CHECK(tensors[2].values[3 * 64 + 5] == values[5 * 10 + 3]);
  });
}

TEST_CASE("export_parameters names the parameters of nested layers as PyTorch does", "[checkpoint]") {
  auto made = stage(nn::Sequential{nn::Linear{4, 3, false}, nn::Repeat{2, nn::Residual{nn::Sequential{nn::Linear{3, 3}, nn::Tanh{}}}}},
                    Shape{4}, {{0, 3}});
  CHECK(names(checkpoint::export_parameters(made)) ==
        std::vector<std::string>{"0.weight[3, 4]", "1.0.0.weight[3, 3]", "1.0.0.bias[3]", "1.1.0.weight[3, 3]", "1.1.0.bias[3]"});
}

TEST_CASE("import_parameters restores exported parameters however the model is cut into units", "[checkpoint]") {
  auto from = digits_stage(1), to = digits_stage(2);
  auto cut = stage(digits, Shape{784}, {{2, 3}, {0, 2}}, 3);
  const auto tensors = checkpoint::export_parameters(from);
  checkpoint::import_parameters(to, tensors, "a test");
  checkpoint::import_parameters(cut, tensors, "a test");
  CHECK(std::ranges::equal(to.values(), from.values()));
  const auto again = checkpoint::export_parameters(cut);
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(again[i].values == tensors[i].values);
}

TEST_CASE("A stage of some layers exports only their parameters and imports them from the whole model", "[checkpoint]") {
  auto whole = digits_stage(1);
  auto part = stage(digits, Shape{784}, {{2, 3}}, 4);
  const auto tensors = checkpoint::export_parameters(whole);
  checkpoint::import_parameters(part, tensors, "a test");
  const auto exported = checkpoint::export_parameters(part);
  CHECK(names(exported) == std::vector<std::string>{"2.weight[10, 64]", "2.bias[10]"});
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) CHECK(exported[i].values == tensors[i + 2].values);
  CHECK_THROWS_WITH(checkpoint::import_parameters(part, exported, "a test"), Contains("this model has 0.weight"));
}

TEST_CASE("import_parameters rejects the parameters of another model and changes nothing", "[checkpoint]") {
  auto made = digits_stage(1);
  const std::vector<float> before(made.values().begin(), made.values().end());
  auto tensors = checkpoint::export_parameters(made);
  for (auto& tensor : tensors) std::ranges::fill(tensor.values, 7.f);
  std::string expected;
  SECTION("a tensor is missing") {
    tensors.erase(tensors.begin() + 2);
    expected = "this model has 2.weight of shape [10, 64], but the file has no such tensor";
  }
  SECTION("there is an extra tensor") {
    tensors.push_back({"4.bias", {3}, {1, 2, 3}});
    expected = "it has 5 tensors, this model 4; this model has no '4.bias' (shape [3] in the file)";
  }
  SECTION("a tensor has another width") {
    tensors[2] = {"2.weight", {12, 64}, std::vector<float>(12 * 64)};
    expected = "2.weight has shape [12, 64] in the file, but [10, 64] in this model";
  }
  SECTION("a weight is transposed") {
    tensors[2].shape = {64, 10};
    expected = "2.weight has shape [64, 10] in the file, but [10, 64] in this model";
  }
  SECTION("a tensor has another name") {
    tensors[0].name = "fc1.weight";
    expected = "this model has 0.weight";
  }
  CHECK_THROWS_AS(checkpoint::import_parameters(made, tensors, "model.safetensors"), pdp::FileError);
  CHECK_THROWS_WITH(checkpoint::import_parameters(made, tensors, "model.safetensors"),
                    StartsWith("model.safetensors holds the parameters of another model") && Contains(expected));
  CHECK(std::ranges::equal(made.values(), before));
}

TEST_CASE("checkpoint::save replaces a file and checkpoint::load returns its parameters unchanged", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  auto from = digits_stage(1), to = digits_stage(2);
  checkpoint::save(path, checkpoint::export_parameters(to));
  checkpoint::save(path, checkpoint::export_parameters(from));  // replaces the first file
  const auto loaded = checkpoint::load(path);
  CHECK(names(loaded) == names(checkpoint::export_parameters(from)));
  checkpoint::import_parameters(to, loaded, path.string());
  CHECK(std::ranges::equal(to.values(), from.values()));
  CHECK(folder.names().size() == 1);  // no temporary file is left
}

TEST_CASE("checkpoint::save and checkpoint::load throw if the folder does not exist", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto nowhere = folder / "no/model.safetensors";
  auto made = stage(nn::Sequential{nn::Linear{2, 2}}, Shape{2}, {{0, 1}});
  CHECK_THROWS_AS(checkpoint::save(nowhere, checkpoint::export_parameters(made)), pdp::FileError);
  CHECK_THROWS_WITH(checkpoint::load(nowhere), Contains(nowhere.string()));
}

TEST_CASE("import_parameters ignores extra tensors that are not float32", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const std::vector<float> weight{1, 2, 3, 4}, bias{5, 6};
  const std::vector<std::uint16_t> table{7, 8, 9};
  const std::vector<std::int64_t> counter{10};
  pdp::data::write_safetensors(path, std::vector{pdp::data::tensor_to_write<std::uint16_t>("table", {3}, table),
                                                 pdp::data::tensor_to_write<float>("0.weight", {2, 2}, weight),
                                                 pdp::data::tensor_to_write<float>("0.bias", {2}, bias),
                                                 pdp::data::tensor_to_write<std::int64_t>("0.num_batches_tracked", {}, counter)});
  auto made = stage(nn::Sequential{nn::Linear{2, 2}}, Shape{2}, {{0, 1}});
  checkpoint::import_parameters(made, checkpoint::load(path), path.string());
  const auto tensors = checkpoint::export_parameters(made);
  CHECK(tensors.at(0).values == weight);
  CHECK(tensors.at(1).values == bias);
}

TEST_CASE("import_parameters rejects a parameter that is not float32 and reports its name and type", "[checkpoint]") {
  const files::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const std::vector<float> weight{1, 2, 3, 4};
  const std::vector<double> bias{5, 6};
  pdp::data::write_safetensors(path, std::vector{pdp::data::tensor_to_write<float>("0.weight", {2, 2}, weight),
                                                 pdp::data::tensor_to_write<double>("0.bias", {2}, bias)});
  auto made = stage(nn::Sequential{nn::Linear{2, 2}}, Shape{2}, {{0, 1}});
  const auto tensors = checkpoint::load(path);
  CHECK_THROWS_AS(checkpoint::import_parameters(made, tensors, "model.safetensors"), pdp::FileError);
  CHECK_THROWS_WITH(checkpoint::import_parameters(made, tensors, "model.safetensors"),
                    Contains("model.safetensors") && Contains("expected elements of type F32 (float32) in 0.bias, found type F64"));
}

TEST_CASE("checkpoint::hash_of reads the bytes of a tensor name as unsigned", "[checkpoint]") {
  const std::vector<float> values{1, 2};
  const std::vector<std::int64_t> parts{pdp::random::hash_of(std::span{values}), 0xc3, 0xa9, 2};
  const auto one = static_cast<std::uint64_t>(pdp::random::hash_of(std::span{parts}));
  CHECK(checkpoint::hash_of({{"\xc3\xa9", {2}, values}}) == static_cast<std::int64_t>((1 + one) >> 2));
}

TEST_CASE("import_parameters rejects a wrong number of values and a duplicate name", "[checkpoint]") {
  auto made = stage(nn::Sequential{nn::Linear{2, 2}}, Shape{2}, {{0, 1}});
  auto tensors = checkpoint::export_parameters(made);
  tensors[1].values.pop_back();
  CHECK_THROWS_WITH(checkpoint::import_parameters(made, tensors, "a test"),
                    Contains("expected 2 values for 0.bias") && Contains("found 1"));
  tensors[1] = tensors[0];
  CHECK_THROWS_WITH(checkpoint::import_parameters(made, tensors, "a test"), Contains("it has '0.weight' twice"));
}
