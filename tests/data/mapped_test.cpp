#include <pdp/data/mapped.hpp>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/data/in_memory.hpp>
#include <pdp/data/loader.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace mapped_test {

namespace data = pdp::data;
using data::ElementType;
using pdp::Index;
using pdp::Shape;

namespace {

/// Returns `count` numbers of type T, all of which a float can hold.
template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<T>((i * 37 + 11) % 251);
  return all;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class F>
std::string refused(F&& call) {
  return files::message_of<pdp::FileError>(std::forward<F>(call)).value();
}

/// Returns the bytes of mapped files that this process has in memory.
std::size_t resident_file_bytes() {
  std::ifstream numbers{"/proc/self/statm"};
  std::size_t total = 0, resident = 0, of_files = 0;
  numbers >> total >> resident >> of_files;
  return of_files * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

template <class T>
void check_type(ElementType type, const std::string& descr) {
  INFO(descr);
  const files::TemporaryFolder folder;
  const auto values = numbers<T>(7 * 3 * 5);
  files::write(folder / "x.npy", files::npy(descr, "(7, 3, 5)", values));
  files::write(folder / "x.raw", "odd" + raw(values));  // unaligned
  const std::array<data::MappedRows, 2> both{data::map_npy(folder / "x.npy"),
                                             data::map_raw(folder / "x.raw", {.type = type, .row = Shape{3, 5}, .skip = 3})};
  const std::array<Index, 5> which{6, 0, 6, 3, 1};
  for (const data::MappedRows& rows : both) {
    CHECK((rows.size() == 7 && rows.row_shape() == Shape{3, 5} && rows.type() == type));
    std::vector<float> found(which.size() * 15), expected;
    for (const Index row : which)
      for (std::size_t i = 0; i < 15; ++i) expected.push_back(static_cast<float>(values[static_cast<std::size_t>(row) * 15 + i]));
    rows.gather(which, found);
    CHECK(found == expected);
    rows.gather({}, std::span<float>{});
  }
}

}  // namespace

TEST_CASE("MappedRows gathers rows of each element type in the requested order, also unaligned", "[data][mapped]") {
  check_type<float>(ElementType::F32, "<f4");
  check_type<double>(ElementType::F64, "<f8");
  check_type<std::int32_t>(ElementType::I32, "<i4");
  check_type<std::int64_t>(ElementType::I64, "<i8");
  check_type<std::uint16_t>(ElementType::U16, "<u2");
  check_type<std::uint8_t>(ElementType::U8, "|u1");
}

TEST_CASE("Mapped has class numbers or vectors as targets, and its copy outlives the original", "[data][mapped]") {
  const files::TemporaryFolder folder;
  files::write(folder / "x.npy", files::npy<float>("<f4", "(3, 2)", {0, 1, 10, 11, 20, 21}));
  files::write(folder / "y.npy", files::npy<std::int64_t>("<i8", "(3,)", {5, 6, 7}));
  std::optional set{data::Mapped<std::int32_t>{data::map_npy(folder / "x.npy"), data::map_npy(folder / "y.npy")}};
  CHECK((set->size() == 3 && set->sample_shape() == Shape{2} && set->target_shape() == Shape{1}));
  const auto copy = *set;
  set.reset();
  std::vector<float> x(4);
  std::vector<std::int32_t> y(2);
  copy.gather(std::array<Index, 2>{2, 0}, x, y);
  CHECK((x == std::vector<float>{20, 21, 0, 1} && y == std::vector<std::int32_t>{7, 5}));

  const auto rows = data::map_npy(folder / "x.npy");
  const data::Mapped<float> itself{rows, rows};
  std::vector<float> also(2);
  itself.gather(std::array<Index, 1>{1}, std::span{x}.first(2), also);
  CHECK((also == std::vector<float>{10, 11} && x[0] == 10 && x[1] == 11));
  CHECK(files::message_of<pdp::ShapeError>([&] { itself.gather(std::array<Index, 1>{3}, std::span{x}.first(2), also); }));
}

TEST_CASE("in_memory copies a mapped dataset, and a loader reads both alike", "[data][mapped]") {
  const files::TemporaryFolder folder;
  files::write(folder / "x.npy", files::npy("<f8", "(31, 3)", numbers<double>(93)));
  files::write(folder / "y.npy", files::npy("|u1", "(31,)", numbers<std::uint8_t>(31)));
  const data::Mapped<std::int32_t> mapped{data::map_npy(folder / "x.npy"), data::map_npy(folder / "y.npy")};
  const data::Sampler sampler{31, 8, 1};
  data::Loader from_file{mapped, sampler};
  data::Loader from_memory{data::in_memory(mapped), sampler};
  from_file.start(0);
  from_memory.start(0);
  while (const auto* batch = from_file.next()) {
    const auto* same = from_memory.next();
    REQUIRE(same != nullptr);
    CHECK((std::ranges::equal(batch->x, same->x) && std::ranges::equal(batch->y, same->y)));
  }
  CHECK(from_memory.next() == nullptr);
}

TEST_CASE("Mapped keeps only the pages of gathered samples in memory when the file is larger", "[data][mapped]") {
  // A sparse file: it takes no space on the disk.
  constexpr std::size_t size = PDP_TEST_SANITIZED != 0 ? std::size_t{1} << 30 : std::size_t{64} << 30;
  constexpr Index width = 2048;  // a row is two pages
  const files::TemporaryFolder folder;
  files::write(folder / "x.raw", "");
  std::filesystem::resize_file(folder / "x.raw", size);
  const Index rows = static_cast<Index>(size / sizeof(float)) / width;
  {
    std::fstream file{folder / "x.raw", std::ios::binary | std::ios::in | std::ios::out};
    const float one = 1;
    file.seekp(static_cast<std::streamoff>(size - sizeof one));
    file.write(reinterpret_cast<const char*>(&one), sizeof one);
  }
  const std::size_t before = resident_file_bytes();
  const auto mapped = data::map_raw(folder / "x.raw", {.row = Shape{width}});
  CHECK(mapped.size() == rows);
  std::vector<float> x(3 * width);
  mapped.gather(std::array<Index, 3>{0, rows / 2, rows - 1}, x);
  CHECK((x.back() == 1 && x.front() == 0));
  CHECK(resident_file_bytes() < before + (std::size_t{4} << 20));
}

TEST_CASE("Mapped throws when a file has shrunk, in place of a bus error", "[data][mapped]") {
  const files::TemporaryFolder folder;
  files::write(folder / "x.raw", raw(numbers<float>(10'000)));
  const auto mapped = data::map_raw(folder / "x.raw", {.row = Shape{10}});
  std::vector<float> x(10);
  mapped.gather(std::array<Index, 1>{999}, x);
  std::filesystem::resize_file(folder / "x.raw", 8000);
  CHECK_THAT(refused([&] { mapped.gather(std::array<Index, 1>{999}, x); }),
             Contains("expected 40000 bytes, found 8000: it has shrunk since it was opened"));
}

TEST_CASE("Mapped rejects files that do not fit together, and says which", "[data][mapped]") {
  const files::TemporaryFolder folder;
  const auto rows = [&](const char* name, const std::string& bytes) {
    files::write(folder / name, bytes);
    return data::map_npy(folder / name);
  };
  const auto x = rows("x.npy", files::npy<float>("<f4", "(3, 2)", std::vector<float>(6)));
  CHECK_THAT(refused([&] {
               data::Mapped<float>{x, rows("y.npy", files::npy<float>("<f4", "(2,)", {1, 2}))};
             }),
             Contains("y.npy: expected 3 rows, as in ") && Contains("x.npy, found 2"));
  CHECK_THAT(refused([&] {
               data::Mapped<std::int32_t>{x, x};
             }),
             Contains("expected class numbers or tokens of type I32, I64, U16 or U8, found F32"));
  CHECK_THAT(refused([&] { rows("y.npy", files::npy<float>("<f4", "()", {1})); }), Contains("1 to 5 dimensions, found 0"));
  CHECK_THAT(refused([&] { rows("y.npy", files::npy<float>("<f4", "(1, 1, 1, 1, 1, 1)", {1})); }), Contains("found 6"));
  CHECK_THAT(refused([&] { rows("y.npy", files::npy<float>("<f4", "(0, 3)", {})); }), Contains("found an array without elements"));

  const data::Mapped<std::int32_t> large{x, rows("y.npy", files::npy<std::int64_t>("<i8", "(3,)", {0, 1, std::int64_t{1} << 31}))};
  std::vector<float> values(2);
  std::vector<std::int32_t> classes(1);
  large.gather(std::array<Index, 1>{1}, values, classes);
  CHECK_THAT(refused([&] { large.gather(std::array<Index, 1>{2}, values, classes); }),
             Contains("y.npy: expected class numbers or tokens that fit 32 bits, found 2147483648 in row 2"));
}

TEST_CASE("map_raw rejects a layout that does not fit the file", "[data][mapped]") {
  const files::TemporaryFolder folder;
  files::write(folder / "x.raw", std::string(24, 'a'));
  const auto map = [&](const data::RawLayout& layout) { static_cast<void>(data::map_raw(folder / "x.raw", layout)); };
  map({.row = Shape{3}});
  map({.row = Shape{2}, .skip = 8});
  CHECK_THAT(refused([&] { map({.row = Shape{4}}); }), Contains("expected a multiple of 16 bytes") && Contains("found 24"));
  CHECK_THAT(refused([&] { map({.row = Shape{1}, .skip = 24}); }), Contains("after the first 24, found 0"));
  CHECK_THAT(refused([&] { map({.row = Shape{1}, .skip = 100}); }), Contains("after the first 100, found 0"));
  const auto setting = [&](const data::RawLayout& layout) { return files::message_of<pdp::ConfigError>([&] { map(layout); }).value(); };
  CHECK_THAT(setting({}), Contains("expected the shape of a row, found none"));
  CHECK_THAT(setting({.row = Shape{3, 0}}), Contains("extents of 1 or more") && Contains("[3, 0]"));
  CHECK_THAT(setting({.row = Shape{Index{1} << 31, Index{1} << 31}}), Contains("less than 2^63 bytes"));
  CHECK_THAT(setting({.type = ElementType::F16, .row = Shape{3}}), Contains("F32, F64, I32, I64, U16 or U8, found F16"));
  files::write(folder / "empty", "");
  CHECK_THAT(refused([&] { static_cast<void>(data::map_raw(folder / "empty", {.row = Shape{1}})); }), Contains("found 0"));
}

}  // namespace mapped_test
