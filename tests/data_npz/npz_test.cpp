#include <zip.h>

#include <pdp/data/npz.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/data/in_memory.hpp>
#include <pdp/data/mapped.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace npz_test {

namespace data = pdp::data;
using pdp::Index;
using pdp::Shape;

namespace {

/// Returns the bytes of an archive with these files.
std::string archive(const std::vector<std::pair<std::string, std::string>>& members, zip_int32_t method = ZIP_CM_DEFLATE) {
  const files::TemporaryFolder folder;
  const std::string path = folder / "a.npz";
  zip_t* const zip = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  if (zip == nullptr) throw std::runtime_error{"no archive"};
  for (const auto& [name, bytes] : members) {
    zip_source_t* const source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
    const zip_int64_t index = zip_file_add(zip, name.c_str(), source, 0);
    if (index < 0 || zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), method, 0) != 0)
      throw std::runtime_error{zip_strerror(zip)};
  }
  if (zip_close(zip) != 0) throw std::runtime_error{"the archive cannot be written"};
  return files::read(path);
}

const std::string matrix = files::npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
const std::string classes = files::npy<std::int64_t>("<i8", "(3,)", {2, 0, 1});
std::string usual(zip_int32_t method = ZIP_CM_DEFLATE) { return archive({{"x.npy", matrix}, {"y.npy", classes}}, method); }

data::Npz open(const std::string& bytes) { return data::Npz{data::Input{files::as_bytes(bytes), "a.npz"}}; }

std::string refusal(const std::string& bytes, std::string_view name = "x") {
  return files::message_of<pdp::FileError>([&] { static_cast<void>(open(bytes).npy_file(name)); }).value();
}

/// Writes a little-endian number to the entry of the central directory for the first file.
std::string with_number(std::string bytes, std::size_t offset, std::uint32_t value, std::size_t size) {
  const std::size_t entry = bytes.find("PK\1\2");
  for (std::size_t byte = 0; byte < size; ++byte) bytes[entry + offset + byte] = static_cast<char>(value >> (8 * byte));
  return bytes;
}

template <class T>
std::pair<std::vector<float>, std::vector<T>> contents(const data::InMemory<T>& set) {
  std::vector<Index> which(static_cast<std::size_t>(set.size()));
  std::iota(which.begin(), which.end(), Index{0});
  std::vector<float> x(static_cast<std::size_t>(set.size() * set.sample_shape().elements()));
  std::vector<T> y(static_cast<std::size_t>(set.size() * set.target_shape().elements()));
  set.gather(which, x, y);
  return {x, y};
}

}  // namespace

TEST_CASE("Npz reads arrays that are stored or compressed", "[data][npz]") {
  const zip_int32_t method = GENERATE(ZIP_CM_STORE, ZIP_CM_DEFLATE);
  const std::string bytes = archive({{"x.npy", matrix}, {"note.txt", "no array"}, {"a/y.npy", classes}}, method);
  data::Npz first = open(bytes);
  const data::Npz file{std::move(first)};
  CHECK(file.names() == std::vector<std::string>{"x", "a/y"});
  const auto x = file.read<float>("x");
  CHECK((x.extents == std::vector<Index>{3, 2} && x.values == std::vector<float>{1, 2, 3, 4, 5, 6}));
  CHECK(file.read<std::int64_t>("a/y").values == std::vector<std::int64_t>{2, 0, 1});
  CHECK(file.read<float>("x").values == x.values);
  const files::TemporaryFolder folder;
  files::write(folder / "a.npz", bytes);
  CHECK(data::Npz{folder / "a.npz"}.read<float>("x").values == x.values);
}

TEST_CASE("read_npz converts arrays to samples and targets", "[data][npz]") {
  const auto set = data::read_npz<std::int32_t>(open(usual()));
  CHECK((set.size() == 3 && set.sample_shape() == Shape{2} && set.target_shape() == Shape{1}));
  CHECK(contents(set) == std::pair{std::vector<float>{1, 2, 3, 4, 5, 6}, std::vector<std::int32_t>{2, 0, 1}});
  const auto swapped = data::read_npz<float>(open(usual()), {.inputs = "y", .targets = "x"});
  CHECK(contents(swapped) == std::pair{std::vector<float>{2, 0, 1}, std::vector<float>{1, 2, 3, 4, 5, 6}});
}

TEST_CASE("read_npz reads an archive with the long headers that NumPy writes", "[data][npz]") {
  const std::filesystem::path folder = std::filesystem::path{PDP_TEST_DATA} / "houses";
  const auto set = data::read_npz<float>(folder / "houses.npz");
  CHECK(contents(set) == contents(data::in_memory(data::Mapped<float>{data::map_npy(folder / "x.npy"), data::map_npy(folder / "y.npy")})));
}

TEST_CASE("Npz reads large arrays, and an array of zeros that deflate makes very small", "[data][npz]") {
  std::vector<float> values(300'001);
  std::iota(values.begin(), values.end(), 0.5f);
  const std::vector<double> zeros(500'000);
  const auto bytes =
      archive({{"x.npy", files::npy<float>("<f4", "(300001,)", values)}, {"zeros.npy", files::npy<double>("<f8", "(500000,)", zeros)}});
  CHECK(open(bytes).read<float>("x").values == values);
  CHECK(open(bytes).read<double>("zeros").values == zeros);
}

TEST_CASE("Npz rejects files that are no archives", "[data][npz]") {
  const files::TemporaryFolder folder;
  for (const std::string& bytes : {matrix, std::string(100, 'x'), usual().substr(0, usual().size() / 2)}) {
    const std::string expected = "expected a .npz file, found no archive that can be read (";
    CHECK_THAT(refusal(bytes), StartsWith("a.npz: " + expected));
    files::write(folder / "a.npz", bytes);
    const auto message = files::message_of<pdp::FileError>([&] { static_cast<void>(data::Npz{folder / "a.npz"}); }).value();
    CHECK_THAT(message, Contains("a.npz: " + expected));
  }
  CHECK_THAT(refusal(""), Contains("a.npz: expected an array 'x', found no arrays."));
}

TEST_CASE("Npz names the arrays of a file when one is missing", "[data][npz]") {
  CHECK_THAT(refusal(usual(), "z"), Equals("a.npz: expected an array 'z', found 'x', 'y'. Name one that the file has."));
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 9; ++i) many.emplace_back(std::to_string(i) + ".npy", matrix);
  CHECK_THAT(refusal(archive(many), "z"), Contains("'6', '7' and others. Name"));
}

TEST_CASE("Npz rejects damaged arrays with the name of the array", "[data][npz]") {
  std::string stored = usual(ZIP_CM_STORE);
  stored[stored.find("NUMPY") + matrix.size() - 10] ^= 1;
  CHECK_THAT(refusal(stored), StartsWith("a.npz, array 'x': expected an array, found that it is damaged: CRC error"));
  CHECK(open(stored).read<std::int64_t>("y").values.size() == 3);

  std::string packed = usual();
  packed[packed.find("x.npy") + 12] ^= 0x55;
  CHECK_THAT(refusal(packed), Contains("array 'x': expected an array, found that it is damaged: "));
  for (const std::uint32_t size : {0xf0000000u, 200'000u})
    CHECK_THAT(refusal(with_number(usual(), 24, size, 4)), Contains(" bytes become " + std::to_string(size)));
  const auto true_size = static_cast<std::uint32_t>(matrix.size());
  CHECK_THAT(refusal(with_number(usual(), 24, true_size + 1, 4)), Contains("array 'x': expected an array, found that it is damaged"));
  CHECK_THAT(refusal(with_number(usual(), 24, true_size - 1, 4)), Contains("array 'x': expected an array, found that it is damaged"));
}

TEST_CASE("Npz rejects arrays that are encrypted, compressed otherwise or of one name", "[data][npz]") {
  CHECK_THAT(refusal(with_number(usual(), 8, 1, 2)), Contains("array 'x': expected an array that is not encrypted"));
  CHECK_THAT(refusal(with_number(usual(), 10, 12, 2)), Contains("stored or compressed by deflate, found compression method 12"));
  std::string twice = usual();
  for (std::size_t at = twice.find("y.npy"); at != std::string::npos; at = twice.find("y.npy")) twice[at] = 'x';
  CHECK_THAT(refusal(twice), Contains("a.npz: expected arrays of different names, found 'x' twice"));
}

TEST_CASE("read_npz names the array in the messages about its contents", "[data][npz]") {
  const auto message = [](const std::string& x, const std::string& y) {
    const std::string bytes = archive({{"x.npy", x}, {"y.npy", y}});
    return files::message_of<pdp::FileError>([&] { static_cast<void>(data::read_npz<float>(open(bytes))); }).value();
  };
  CHECK_THAT(message(files::npy_of("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "abcd"), classes),
             Contains("a.npz, array 'x': expected little-endian float32"));
  CHECK_THAT(message(matrix, files::npy<std::int64_t>("<i8", "(2,)", {2, 0})), Contains("a.npz, array 'x'"));
  CHECK_THAT(files::message_of<pdp::FileError>([] { static_cast<void>(open(usual()).read<float>("y")); }).value(),
             Contains("a.npz, array 'y': expected elements of type float32, found int64"));
}

}  // namespace npz_test
