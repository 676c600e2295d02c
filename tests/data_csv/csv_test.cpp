#include <pdp/data/csv.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <clocale>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/data/in_memory.hpp>

#include "catch.hpp"
#include "data/files.hpp"

namespace csv_test {

namespace data = pdp::data;
using data::CsvOptions;
using pdp::Index;
using pdp::Shape;

namespace {

template <class T = float>
data::InMemory<T> parse(std::string_view bytes, const CsvOptions& options) {
  return data::read_csv<T>(data::Input{files::as_bytes(bytes), "x.csv"}, options);
}

template <class T = float>
std::string refusal(std::string_view bytes, const CsvOptions& options) {
  return files::message_of<pdp::FileError>([&] { static_cast<void>(parse<T>(bytes, options)); }).value();
}

/// Returns all inputs and all targets of a dataset.
template <class T>
std::pair<std::vector<float>, std::vector<T>> all_of(const data::InMemory<T>& set) {
  std::vector<Index> which(static_cast<std::size_t>(set.size()));
  std::iota(which.begin(), which.end(), Index{0});
  std::vector<float> x(static_cast<std::size_t>(set.size() * set.sample_shape().elements()));
  std::vector<T> y(static_cast<std::size_t>(set.size() * set.target_shape().elements()));
  set.gather(which, x, y);
  return {x, y};
}

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("read_csv takes columns by name or number, in the requested order", "[data][csv]") {
  const std::string_view houses = "area,street,year,price\n120,Oak,1990,3.5\n80,Elm,2001,2.5\n";
  const auto named = parse(houses, {.inputs = {"year", "area"}, .targets = {"price"}});
  CHECK((named.size() == 2 && named.sample_shape() == Shape{2} && named.target_shape() == Shape{1}));
  CHECK(all_of(named) == std::pair{Floats{1990, 120, 2001, 80}, Floats{3.5f, 2.5f}});
  CHECK(all_of(parse(houses, {.inputs = {0}, .targets = {3, 2}})) == std::pair{Floats{120, 80}, Floats{3.5f, 1990, 2.5f, 2001}});
  CHECK(all_of(parse<std::int32_t>("1;0;7\n2;1;8", {.targets = {1}, .header = false, .separator = ';'})) ==
        std::pair{Floats{1, 7, 2, 8}, std::vector<std::int32_t>{0, 1}});
}

TEST_CASE("read_csv reads quotes, line ends and a byte order mark as RFC 4180 and spreadsheets write them", "[data][csv]") {
  const CsvOptions options{.inputs = {"a\"b", "c\nd"}, .targets = {"t,u"}};
  const auto expected = std::pair{Floats{1, 2, 4, 5}, Floats{3, 6}};
  CHECK(all_of(parse("\"a\"\"b\",\"c\nd\",\"t,u\"\n1,\"2\",3\n4,5,6\n", options)) == expected);
  CHECK(all_of(parse("\xef\xbb\xbf\"a\"\"b\",\"c\nd\",\"t,u\"\r\n1,\"2\",3\r\n\r\n4, 5 ,\t6", options)) == expected);
  CHECK(all_of(parse("a,b\r1,2\r3,4\r", {.targets = {"b"}})) == std::pair{Floats{1, 3}, Floats{2, 4}});
  CHECK(all_of(parse("a\tb\n1\t2\n", {.targets = {"b"}, .separator = '\t'})) == std::pair{Floats{1}, Floats{2}});
}

TEST_CASE("read_csv reads a plain or packed file that is larger than its buffer", "[data][csv]") {
  const files::TemporaryFolder folder;
  std::mt19937 random{5};
  std::string bytes = "a,text,b\n";
  std::pair<Floats, Floats> expected;
  for (int row = 0; row < 20'000; ++row) {
    std::array<std::string, 2> numbers;
    for (int column = 0; column < 2; ++column) {
      const float number = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0xbfffffff);  // below 2, of any exponent
      std::array<char, 64> digits{};
      numbers[static_cast<std::size_t>(column)] = {digits.data(), std::to_chars(digits.data(), digits.data() + 64, number).ptr};
      (column == 0 ? expected.first : expected.second).push_back(number);
    }
    bytes += numbers[0] + ",\"some\n\"\"text\"\"\"," + numbers[1] + "\n";
  }
  files::write(folder / "plain", bytes);
  files::write(folder / "packed", files::gzip(bytes, folder / "scratch"));
  const CsvOptions options{.inputs = {"a"}, .targets = {"b"}};
  CHECK(all_of(data::read_csv<float>(folder / "plain", options)) == expected);
  CHECK(all_of(data::read_csv<float>(folder / "packed", options)) == expected);
}

TEST_CASE("read_csv reads a decimal point in a locale that has commas", "[data][csv]") {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  for (const char* locale : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_NUMERIC, locale) != nullptr) break;
  const auto read = all_of(parse("1.5,+2\n", {.targets = {1}, .header = false}));
  std::setlocale(LC_NUMERIC, before.c_str());
  CHECK(read == std::pair{Floats{1.5f}, Floats{2}});
}

TEST_CASE("read_csv names file, line and column of a field that is no number", "[data][csv]") {
  const CsvOptions options{.inputs = {"a"}, .targets = {"b"}};
  CHECK_THAT(refusal("a,b\n1,2\n\n3,x\n", options),
             StartsWith("x.csv, line 4: expected a finite number that fits a float in column 'b', found 'x'."));
  CHECK_THAT(refusal("a,b\n1,2\n,3\n", options), Contains("line 3: ") && Contains("in column 'a', found an empty field."));
  for (const char* wrong : {"nan", "inf", "-infinity", "1e39", "1e999", "1.5x", "0x10", "+-1", "--1", "1 2", "."})
    CHECK_THAT(refusal(std::string{"a,b\n1,"} + wrong + "\n", options), Contains(std::string{"found '"} + wrong + "'"));
  CHECK_THAT(refusal("1;2,5\n", {.targets = {1}, .header = false, .separator = ';'}),
             Contains("column 1 (counted from 0), found '2,5'. Write numbers with a decimal point"));
  for (const char* wrong : {"-1", "1.0", "2147483648", "cat", ""})
    CHECK_THAT(refusal<std::int32_t>(std::string{"a,b\n1,"} + wrong + "\n", options),
               Contains("line 2: expected a class number, a whole number from 0 to 2147483647 in column 'b'"));
}

TEST_CASE("read_csv rejects rows of different lengths and wrong quotes, with the line", "[data][csv]") {
  const CsvOptions options{.targets = {1}, .header = false};
  CHECK_THAT(refusal("1,2\n3,4,5\n", options), Contains("line 2: expected 2 fields, as in the first row, found 3"));
  CHECK_THAT(refusal("1,2\n\n3\n", options), Contains("line 3: expected 2 fields, as in the first row, found 1"));
  CHECK_THAT(refusal("1,2\n3,4\"\n", options), Contains("line 2: expected quotes around a whole field"));
  CHECK_THAT(refusal("1,2\n3,\"4\"5\n", options), Contains("line 2: expected quotes around a whole field"));
  CHECK_THAT(refusal("1,2\n3,4\n5,\"6\n7,8\n", options), Contains("line 3: expected that quotes end"));
  CHECK_THAT(refusal("1,2\n3,\"" + std::string(3 << 20, '4'), options), Contains("line 2: expected fields of at most 1048576 bytes"));
}

TEST_CASE("read_csv rejects options that do not fit the file", "[data][csv]") {
  const std::string_view file = "a,b,b\n1,2,3\n";
  CHECK_THAT(refusal(file, {.inputs = {"c"}, .targets = {"a"}}), Contains("line 1: expected a column 'c', found 'a', 'b', 'b'"));
  CHECK_THAT(refusal(file, {.inputs = {"b"}, .targets = {"a"}}), Contains("expected one column 'b', found several"));
  CHECK_THAT(refusal(file, {.targets = {3}}), Contains("expected a column 3 (counted from 0), found 3 columns"));
  CHECK_THAT(refusal(file, {.targets = {-1}}), Contains("expected a column -1"));
  CHECK_THAT(refusal("a\n1\n", {.targets = {0}}), Contains("expected columns that are not targets, found none"));
  CHECK_THAT(refusal("a,b\n", {.targets = {"b"}}), Contains("expected rows with numbers, found the end of the file"));
  CHECK_THAT(refusal("", {.targets = {"b"}}), Contains("line 1: expected rows with numbers"));
  const auto setting = [&](const auto& read) { return files::message_of<pdp::ConfigError>(read).value(); };
  CHECK_THAT(setting([&] { static_cast<void>(parse(file, {})); }), Contains("at least one column in CsvOptions::targets, found 0"));
  CHECK_THAT(setting([&] { static_cast<void>(parse<std::int32_t>(file, {.targets = {0, 1}})); }), Contains("one column of class numbers"));
  CHECK_THAT(setting([&] { static_cast<void>(parse(file, {.targets = {"a"}, .header = false})); }), Contains("the numbers of columns"));
  CHECK_THAT(setting([&] { static_cast<void>(parse(file, {.targets = {0}, .separator = '"'})); }), Contains("expected a separator"));
}

}  // namespace csv_test
