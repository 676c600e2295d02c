#include <pdp/data/safetensors.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <numeric>

#include "catch.hpp"
#include "data/allocations.hpp"
#include "data/files.hpp"

namespace safetensors_test {

namespace data = pdp::data;
using data::SafeTensors;
using data::tensor_to_write;
using pdp::Index;

namespace {

/// Returns a file with `json` as its header and `data_bytes` bytes behind it.
std::string file_of(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json + std::string(data_bytes, 'x');
}

SafeTensors open(const std::string& bytes) { return SafeTensors{data::Input{files::as_bytes(bytes), "weights"}}; }

std::string refusal(const std::string& bytes) {
  return files::message_of<pdp::FileError>([&] { open(bytes); }).value_or("no error");
}

std::string refusal(const std::string& json, std::size_t data_bytes) { return refusal(file_of(json, data_bytes)); }

template <class T>
std::vector<T> read(const SafeTensors& file, std::string_view name) {
  std::vector<T> values(static_cast<std::size_t>(file.at(name).elements()));
  file.read<T>(name, values);
  return values;
}

template <class T>
void check_round_trip(const std::vector<T>& values) {
  const files::TemporaryFolder folder;
  const auto rows = static_cast<Index>(values.size());
  const std::array tensors{tensor_to_write<T>("values", {rows, 1}, values)};
  data::write_safetensors(folder / "weights", tensors);
  const SafeTensors file{folder / "weights"};
  REQUIRE(file.tensors().size() == 1);
  CHECK(file.at("values").shape == std::vector<Index>{rows, 1});
  CHECK(file.at("values").type == data::element_type_of<T>);
  CHECK(read<T>(file, "values") == values);
}

}  // namespace

TEST_CASE("SafeTensors reads the names, shapes, values and metadata that write_safetensors wrote", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  std::vector<float> weight(6 * 5), bias(5);
  std::iota(weight.begin(), weight.end(), 0.5f);
  const std::vector<float> single{std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> none;
  const std::string odd_name = "naïve \"0\"\\\n";
  const std::array tensors{tensor_to_write<float>("0.weight", {5, 6}, weight), tensor_to_write<float>("0.bias", {5}, bias),
                           tensor_to_write<float>("single", {}, single), tensor_to_write<float>("empty", {3, 0}, none),
                           tensor_to_write<float>(odd_name, {5}, bias)};
  data::write_safetensors(folder / "weights", tensors, {{"format", "pt"}, {"epoch", "3"}});

  const SafeTensors file{folder / "weights"};
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors()) names.push_back(tensor.name);
  CHECK(names.size() == 5);
  CHECK(file.metadata() == data::Metadata{{"format", "pt"}, {"epoch", "3"}});
  CHECK(file.at("0.weight").shape == std::vector<Index>{5, 6});
  CHECK(read<float>(file, "0.weight") == weight);
  CHECK(read<float>(file, odd_name) == bias);
  CHECK(std::isnan(read<float>(file, "single").front()));
  CHECK(file.at("single").shape.empty());
  CHECK(read<float>(file, "empty").empty());
  CHECK(file.contains("empty"));
  CHECK(!file.contains("full"));
}

TEST_CASE("write_safetensors and SafeTensors preserve the values of every element type", "[data][safetensors]") {
  check_round_trip<double>({0.0, -1.5, std::numeric_limits<double>::max()});
  check_round_trip<float>({0.0f, -1.5f, std::numeric_limits<float>::denorm_min()});
  check_round_trip<data::Float16>({{0x3c00}, {0xffff}, {0}});
  check_round_trip<data::BFloat16>({{0x3f80}, {0xffff}, {0}});
  check_round_trip<std::int64_t>({std::numeric_limits<std::int64_t>::min(), 0, 1});
  check_round_trip<std::int32_t>({std::numeric_limits<std::int32_t>::min(), 0, 1});
  check_round_trip<std::int16_t>({-32768, 0, 32767});
  check_round_trip<std::int8_t>({-128, 0, 127});
  check_round_trip<std::uint8_t>({0, 1, 255});
  check_round_trip<std::uint16_t>({0, 1, 65535});
  check_round_trip<std::uint32_t>({0, 1, std::numeric_limits<std::uint32_t>::max()});
  check_round_trip<std::uint64_t>({0, 1, std::numeric_limits<std::uint64_t>::max()});
  static_assert(data::Element<bool> && !data::Element<char16_t> && !data::Element<int*>);
}

TEST_CASE("write_safetensors pads the header to 8 bytes and puts larger elements first", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes{7, 8, 9};
  const std::vector<float> floats{1.0f};
  const std::array tensors{tensor_to_write<std::uint8_t>("b", {3}, bytes), tensor_to_write<float>("a", {1}, floats)};
  data::write_safetensors(folder / "weights", tensors);

  std::string json = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  CHECK(files::read(folder / "weights") == file_of(json, 0) + std::string{"\0\0\x80\x3f\x07\x08\x09", 7});
}

TEST_CASE("SafeTensors reads files of PyTorch's package: another key order, no padding, bools", "[data][safetensors]") {
  const std::string bytes =
      file_of(
          R"({"__metadata__":{"format":"pt"},"m":{"data_offsets":[4,7],"shape":[3],"dtype":"BOOL"},"w":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}})",
          0) +
      std::string{"\x00\x3c\x00\xbc\x01\x00\x01", 7};
  const auto file = open(bytes);
  CHECK(file.tensors().front().name == "w");
  CHECK(read<data::Float16>(file, "w") == std::vector<data::Float16>{{0x3c00}, {0xbc00}});
  std::array<bool, 3> mask{};
  file.read<bool>("m", mask);
  CHECK(mask == std::array{true, false, true});
  CHECK(open(file_of("{}", 0)).tensors().empty());
}

TEST_CASE("SafeTensors::read rejects a bool whose byte is not 0 or 1", "[data][safetensors]") {
  const auto bytes = file_of(R"({"m":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1);
  const auto file = open(bytes);
  bool value = false;
  CHECK_THAT(files::message_of<pdp::FileError>([&] { file.read<bool>("m", {&value, 1}); }).value(), Contains("found 120"));
}

TEST_CASE("SafeTensors::read rejects a missing tensor, a wrong type and a wrong size", "[data][safetensors]") {
  const auto bytes = file_of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  const auto file = open(bytes);
  const auto refused = [&]<class T>(std::string_view name, std::vector<T> values) {
    return files::message_of<pdp::FileError>([&] { file.read<T>(name, values); }).value_or("no error");
  };
  CHECK(refused("w", std::vector<float>(2)) == "no error");
  CHECK_THAT(refused("v", std::vector<float>(2)), Contains("expected a tensor 'v', found 'w'"));
  CHECK_THAT(refused("w", std::vector<float>(3)), Contains("expected 3 elements of type F32 as tensor 'w', found 2 of type F32"));
  CHECK_THAT(refused("w", std::vector<std::int32_t>(2)), Contains("expected 2 elements of type I32") && Contains("of type F32"));
  CHECK_THAT(refused("w", std::vector<double>(1)), Contains("of type F64"));
}

TEST_CASE("SafeTensors rejects every truncated file and a file with an extra byte", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  const std::vector<float> values(9);
  const std::array tensors{tensor_to_write<float>("w", {3, 3}, values)};
  data::write_safetensors(folder / "weights", tensors);
  const std::string whole = files::read(folder / "weights");
  CHECK(refusal(whole) == "no error");
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK(refusal(whole.substr(0, size)) != "no error");
  CHECK_THAT(refusal(whole + "x"), Contains("its tensors need 36 bytes, but 37 follow"));
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 1)), Contains("its tensors need 36 bytes, but 35 follow"));
}

TEST_CASE("SafeTensors rejects a header length beyond the end of the file or the limit of 100 MB", "[data][safetensors]") {
  const auto with_length = [](std::uint64_t length) {
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + "{}";
  };
  CHECK(refusal(with_length(2)) == "no error");
  CHECK_THAT(refusal(with_length(3)), Contains("header would be of 3 bytes, but only 2 follow"));
  CHECK_THAT(refusal(with_length(100'000'001)), Contains("more than the 100 MB"));
  CHECK_THAT(refusal(with_length(~0ull)), Contains("more than the 100 MB"));
  CHECK_THAT(refusal(with_length(0)), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("short"), Contains("it has 5 bytes, fewer than the 8"));
}

TEST_CASE("SafeTensors rejects a header that contradicts itself or the file, with the reason", "[data][safetensors]") {
  const auto w = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(refusal(w("F32", "[2]", "[0,8]"), 8) == "no error");
  CHECK_THAT(refusal(w("F32", "[2]", "[0,9]"), 9), Contains("are 0 and 9, but its shape and dtype need 8 bytes"));
  CHECK_THAT(refusal(w("F32", "[2]", "[8,0]"), 8), Contains("are 8 and 0"));
  CHECK_THAT(refusal(w("F32", "[2]", "[8,16]"), 16), Contains("overlap or hole"));
  CHECK_THAT(refusal(w("F32", "[2]", "[0,8]"), 7), Contains("need 8 bytes, but 7 follow"));
  CHECK_THAT(refusal(w("F32", "[2]", "[0]"), 8), Contains("1 data_offsets, not 2"));
  CHECK_THAT(refusal(w("F32", "[2]", "8"), 8), Contains("which is not a list"));
  CHECK_THAT(refusal(w("F32", "2", "[0,8]"), 8), Contains("which is not a list"));
  CHECK_THAT(refusal(w("F32", "[-2]", "[0,8]"), 8), Contains("hold -2, which is not a count"));
  CHECK_THAT(refusal(w("F32", "[2.0]", "[0,8]"), 8), Contains("which is not a count"));
  CHECK_THAT(refusal(w("F32", "[\"2\"]", "[0,8]"), 8), Contains("which is not a count"));
  CHECK_THAT(refusal(w("F32", "[4611686018427387904,4]", "[0,0]"), 0), Contains("more than 2^63"));
  CHECK_THAT(refusal(w("F32", "[18446744073709551615]", "[0,0]"), 0), Contains("more than 2^63"));
  CHECK_THAT(refusal(w("F32", "[18446744073709551616]", "[0,0]"), 0), Contains("which is not a count"));
  CHECK_THAT(refusal(w("F8_E4M3", "[2]", "[0,3]"), 3), Contains("need 2 bytes"));
  CHECK_THAT(refusal(w("F4", "[3]", "[0,2]"), 2), Contains("needs 12 bits, which are not whole bytes"));
  CHECK_THAT(refusal(w("F99", "[2]", "[2,0]"), 2), Contains("are 2 and 0"));
  CHECK_THAT(refusal(w("F99", "[1000000]", "[0,2]"), 2), Contains("are 0 and 2, but its shape has 1000000 elements"));
  CHECK_THAT(refusal(w("F99", "[4611686018427387904,4]", "[0,2]"), 2), Contains("more than 2^63"));
  CHECK_THAT(refusal(R"({"w":3})", 0), Contains("not described by"));
  CHECK_THAT(refusal(R"({"w":{"dtype":"F32","shape":[]}})", 4), Contains("not described by"));
  CHECK_THAT(refusal(R"({"w":{"dtype":1,"shape":[],"data_offsets":[0,4]}})", 4), Contains("has 1 as its dtype"));
  CHECK_THAT(refusal(R"({"w":{"dtype":null,"shape":[],"data_offsets":[0,4]}})", 4), Contains("has null as its dtype"));
}

TEST_CASE("SafeTensors rejects tensors that overlap or leave a hole", "[data][safetensors]") {
  const auto pair = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  CHECK(refusal(pair("[0,4]", "[4,8]"), 8) == "no error");
  CHECK(refusal(pair("[4,8]", "[0,4]"), 8) == "no error");
  CHECK_THAT(refusal(pair("[0,4]", "[3,7]"), 7), Contains("'b' begins at 3, but the one before it ends at 4"));
  CHECK_THAT(refusal(pair("[0,4]", "[0,4]"), 4), Contains("overlap or hole"));
  CHECK_THAT(refusal(pair("[0,4]", "[5,9]"), 9), Contains("'b' begins at 5"));
  CHECK_THAT(refusal(pair("[1,5]", "[5,9]"), 9), Contains("'a' begins at 1"));
}

TEST_CASE("SafeTensors rejects a header that is not valid JSON of the format", "[data][safetensors]") {
  const std::string w = R"("w":{"dtype":"U8","shape":[],"data_offsets":[0,1]})";
  CHECK(refusal("{" + w + "}   ", 1) == "no error");
  CHECK_THAT(refusal("{" + w + "," + w + "}", 1), Contains("the name 'w' occurs twice in its header"));
  CHECK_THAT(refusal(R"({"w":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1), Contains("tensor 'w' has dtype twice"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":"1","a":"2"}})", 0), Contains("the name 'a' occurs twice in __metadata__"));
  CHECK_THAT(refusal(R"({"__metadata__":null,"__metadata__":{}})", 0), Contains("the name '__metadata__' occurs twice"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":1}})", 0), Contains("holds 1 at 'a', which is not text"));
  CHECK_THAT(refusal(R"({"__metadata__":"a"})", 0), Contains("__metadata__ is not an object"));
  CHECK_THAT(refusal("{" + w, 1), Contains("not JSON"));
  CHECK_THAT(refusal("{" + w + "}garbage", 1), Contains("not JSON"));
  CHECK_THAT(refusal("{" + w + "}" + '\0' + "garbage", 1), Contains("zero byte"));
  CHECK_THAT(refusal("[]", 0), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("  ", 0), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("\xef\xbb\xbf{" + w + "}", 1), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("{\"\xff\":{}}", 0), Contains("not JSON"));
  CHECK_THAT(refusal(R"({"w":{"shape":[[)", 0), Contains("hold a list, which is not a count"));
  CHECK_THAT(refusal(R"({"w":{"shape":{"a":1}}})", 0), Contains("are an object, which is not a list"));
  CHECK_THAT(refusal(R"({"w":[{"a":1}]})", 0), Contains("not described by"));
  CHECK_THAT(refusal(R"({"__metadata__":{"a":{"b":"c"}}})", 0), Contains("holds an object at 'a', which is not text"));
  CHECK_THAT(refusal(R"({"w":{"more":)" + std::string(1'000'000, '['), 0), Contains("nested too deep"));
  CHECK(refusal(R"({"__metadata__":{"a":"{"},"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1) == "no error");
}

TEST_CASE("SafeTensors accepts a header with white space, null metadata or unknown fields", "[data][safetensors]") {
  const std::string w = R"("w":{"dtype":"U8","shape":[],"data_offsets":[0,1]})";
  CHECK(refusal(" \n{ " + w + "\t}\r\n ", 1) == "no error");
  CHECK(refusal(R"({"__metadata__":null,)" + w + "}", 1) == "no error");
  CHECK(refusal(R"({"__metadata__":{},)" + w + "}", 1) == "no error");
  CHECK(refusal(R"({"w":{"more":1,"dtype":"U8","":null,"shape":[],"data_offsets":[0,1],"a":{"dtype":["U8",{}]},"b":[[]]}})", 1) ==
        "no error");
  CHECK(refusal(R"({"":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})", 0) == "no error");
}

TEST_CASE("SafeTensors reads a float32 tensor beside a tensor of any other type", "[data][safetensors]") {
  const auto [type, bits] = GENERATE(table<std::string, std::size_t>({{"U16", 16},
                                                                      {"U32", 32},
                                                                      {"U64", 64},
                                                                      {"C64", 64},
                                                                      {"F8_E4M3", 8},
                                                                      {"F8_E5M2", 8},
                                                                      {"F8_E8M0", 8},
                                                                      {"F8_E4M3FNUZ", 8},
                                                                      {"F8_E5M2FNUZ", 8},
                                                                      {"F6_E2M3", 6},
                                                                      {"F6_E3M2", 6},
                                                                      {"F4", 4},
                                                                      {"a type of later versions", 12}}));
  const auto bytes = std::to_string(4 * bits / 8), all = std::to_string(4 * bits / 8 + 4);
  const std::string whole = file_of(R"({"other":{"dtype":")" + type + R"(","shape":[2,2],"data_offsets":[0,)" + bytes +
                                        R"(]},"w":{"dtype":"F32","shape":[1],"data_offsets":[)" + bytes + "," + all + "]}}",
                                    4 * bits / 8) +
                            std::string{"\0\0\x80\x3f", 4};
  INFO(type);
  const auto file = open(whole);
  CHECK(read<float>(file, "w") == std::vector<float>{1.0f});
  CHECK(file.at("other").type_name() == type);
  CHECK(file.at("other").elements() == 4);
  std::vector<float> values(4);
  CHECK_THAT(files::message_of<pdp::FileError>([&] { file.read<float>("other", values); }).value(),
             Contains("of type F32 as tensor 'other', found 4 of type " + type));
}

TEST_CASE("SafeTensors reads 200,000 tensors and rejects too many dimensions or metadata entries", "[data][safetensors]") {
  const auto empty = [](const std::string& name, const std::string& shape = "0") {
    return "\"" + name + R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,0]})";
  };
  const auto tensors = [&](std::size_t count) {
    std::string json = "{" + empty("0");
    for (std::size_t i = 1; i < count; ++i) json += "," + empty(std::to_string(i));
    return json + "}";
  };
  constexpr std::size_t count = PDP_TEST_SANITIZED ? 20'000 : 200'000;
  const std::string bytes = file_of(tensors(count), 0);
  const long before = allocations::bytes;
  const auto file = open(bytes);
  CHECK(allocations::bytes - before < 10 * static_cast<long>(bytes.size()));
  CHECK(file.tensors().size() == count);
  CHECK(file.contains(std::to_string(count - 1)));
  CHECK(!file.contains(std::to_string(count)));

  std::string dimensions = "0";
  for (int i = 1; i < 64; ++i) dimensions += ",1";
  CHECK(refusal("{" + empty("w", dimensions) + "}", 0) == "no error");
  CHECK_THAT(refusal("{" + empty("w", dimensions + ",1") + "}", 0), Contains("'w' has more than 64 dimensions"));
  std::string metadata = R"({"__metadata__":{"0":"")";
  for (int i = 1; i < 100'000; ++i) metadata += ",\"" + std::to_string(i) + R"(":"")";
  CHECK(refusal(metadata + "}}", 0) == "no error");
  CHECK_THAT(refusal(metadata + R"(,"more":""}})", 0), Contains("more than 100000 entries"));
}

TEST_CASE("SafeTensors shortens and sanitises a hostile tensor name in its error message", "[data][safetensors]") {
  const std::string message = refusal("{\"\\u001b[2J" + std::string(1'000'000, 'a') + "\":1}", 0);
  CHECK_THAT(message, Contains("tensor '?[2Jaaaa") && Contains("...'"));
  CHECK(message.size() < 400);
}

TEST_CASE("SafeTensors rejects a missing file and a folder", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path) {
    return files::message_of<pdp::FileError>([&] { SafeTensors{path}; }).value_or("no error");
  };
  CHECK_THAT(refused(folder / "none"), Contains("none: cannot open it: No such file or directory"));
  CHECK_THAT(refused(folder.path()), Contains("expected a regular file"));
}

TEST_CASE("write_safetensors rejects invalid tensors before it touches the old file", "[data][safetensors]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  const std::vector<float> values(4);
  const auto refused = [&]<class Error>(std::vector<data::TensorToWrite> tensors, Error, const data::Metadata& metadata = {}) {
    return files::message_of<Error>([&] { data::write_safetensors(folder / "weights", tensors, metadata); }).value_or("no error");
  };
  const auto w = [&](std::string name, std::vector<Index> shape) {
    return tensor_to_write<float>(std::move(name), std::move(shape), values);
  };
  const pdp::ConfigError config{""};
  const pdp::ShapeError shape{""};

  CHECK_THAT(refused({w("w", {4}), w("w", {4})}, config), Contains("'w'") && Contains("another tensor already has this name"));
  CHECK_THAT(refused({w("__metadata__", {4})}, config), Contains("reserved for metadata"));
  CHECK_THAT(refused({w("\xff", {4})}, config), Contains("UTF-8"));
  CHECK_THAT(refused({w("w", {4})}, config, {{"a", "\xff"}}), Contains("UTF-8"));
  CHECK_THAT(refused({w("w", {5})}, shape), Contains("need 20 bytes, found 16"));
  CHECK_THAT(refused({w("w", {-1, -4})}, shape), Contains("'w'"));
  CHECK_THAT(refused({w("w", {Index{1} << 62, 4})}, shape), Contains("'w'"));
  auto odd = w("w", {4});
  odd.type = data::ElementType::F4;
  CHECK_THAT(refused({odd}, config), Contains("elements of whole bytes, found type F4"));
  CHECK_THAT(refused({w("w", std::vector<Index>(65, 1))}, config), Contains("at most 64 dimensions, found 65"));
  CHECK(files::read(folder / "weights") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
  CHECK(refused({w("w", {2, 2})}, shape) == "no error");
}

}  // namespace safetensors_test
