#include <pdp/data/npy.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/allocations.hpp"
#include "data/files.hpp"

namespace npy_test {

namespace data = pdp::data;
using data::ElementType;
using pdp::Index;

namespace {

data::NpyHeader header(const std::string& bytes) { return data::read_npy_header(data::Input{files::as_bytes(bytes), "x.npy"}); }

std::string refusal(const std::string& bytes) {
  return files::message_of<pdp::FileError>([&] { static_cast<void>(header(bytes)); }).value();
}

/// Returns the message about a file with one float and these words as its header.
std::string refusal_of(const std::string& dictionary) { return refusal(files::npy_of(dictionary, "abcd")); }

template <class T>
data::Npy<T> parse(const std::string& bytes) {
  return data::read_npy<T>(data::Input{files::as_bytes(bytes), "x.npy"});
}

}  // namespace

TEST_CASE("read_npy reads the five element types of any number of dimensions", "[data][npy]") {
  CHECK(parse<float>(files::npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, -0.5f})).values == std::vector<float>{1, 2, 3, 4, 5, -0.5f});
  CHECK(parse<double>(files::npy<double>("<f8", "(1, 1, 2)", {1e300, 0.1})).values == std::vector<double>{1e300, 0.1});
  CHECK(parse<std::int32_t>(files::npy<std::int32_t>("<i4", "(3,)", {-7, 0, 7})).values == std::vector<std::int32_t>{-7, 0, 7});
  const std::vector<std::int64_t> large{std::numeric_limits<std::int64_t>::min(), 5};
  CHECK(parse<std::int64_t>(files::npy("<i8", "(2, 1)", large)).values == large);
  CHECK(parse<std::uint8_t>(files::npy<std::uint8_t>("|u1", "(1, 2, 1, 2, 1, 1)", {1, 2, 3, 255})).values ==
        std::vector<std::uint8_t>{1, 2, 3, 255});

  CHECK(header(files::npy<float>("<f4", "(2, 3)", std::vector<float>(6))) == data::NpyHeader{ElementType::F32, {2, 3}, 128});
  CHECK(header(files::npy<float>("<f4", "()", {1})).extents.empty());
  const auto none = parse<double>(files::npy<double>("<f8", "(0, 5)", {}));
  CHECK((none.extents == std::vector<Index>{0, 5} && none.values.empty()));
}

TEST_CASE("read_npy reads versions 1.0, 2.0 and 3.0, from memory or from a file", "[data][npy]") {
  const files::TemporaryFolder folder;
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string bytes = files::npy_of("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc", major);
    CHECK(parse<std::uint8_t>(bytes).values == std::vector<std::uint8_t>{'a', 'b', 'c'});
    files::write(folder / "x.npy", bytes);
    CHECK(data::read_npy<std::uint8_t>(folder / "x.npy").extents == std::vector<Index>{3});
  }
  for (const char major : {'\0', '\4', '\xff'})
    CHECK_THAT(refusal(files::npy_of("{}", "", major)), Contains("it has version") && Contains("not 1.0, 2.0 or 3.0"));
}

TEST_CASE("read_npy_header accepts a header as other programs write it", "[data][npy]") {
  // Other quotes, order of keys, spaces, and a number of Python 2.
  const std::array<std::string, 4> headers{"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
                                           " { 'fortran_order' :\tFalse ,\n 'descr' : '<f4' , 'shape' : ( 2 , ) , } ",
                                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,)}",
                                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"};
  for (const std::string& each : headers) {
    INFO(each);
    CHECK(header(files::npy_of(each, "abcdefgh")).elements() == 2);
  }
}

TEST_CASE("read_npy_header rejects Fortran order, other types and objects, and says what to do", "[data][npy]") {
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }"),
             StartsWith("x.npy: expected values in C order, found Fortran order.") && Contains("numpy.ascontiguousarray"));
  const auto of_type = [](const std::string& descr) {
    return refusal_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }");
  };
  CHECK_THAT(of_type("'|O'"), Contains("found Python objects") && Contains("a.astype(numpy.float32)"));
  CHECK_THAT(of_type("'>f4'"), Contains("found big-endian elements of type '>f4'"));
  CHECK_THAT(of_type("[('a', '<f4')]"), Contains("found records of several fields"));
  for (const char* type : {"'<f2'", "'|b1'", "'|i1'", "'<u4'", "'<c8'", "'<U4'", "'<M8[s]'", "'|V4'", "''"})
    CHECK_THAT(of_type(type), Contains("expected little-endian float32, float64, int32, int64, uint16 or uint8, found elements of type "));
}

TEST_CASE("read_npy_header rejects every truncated file, and bytes after the array", "[data][npy]") {
  const std::string whole = files::npy<float>("<f4", "(2, 3)", std::vector<float>(6, 1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("the first " << size << " of " << whole.size() << " bytes");
    CHECK_THAT(refusal(whole.substr(0, size)), StartsWith("x.npy: expected") && Contains("found"));
  }
  CHECK_THAT(refusal(whole.substr(0, 151)), Contains("expected 24 bytes of data after the header, found 23. The file is truncated"));
  CHECK_THAT(refusal(whole + "x"), Contains("expected 24 bytes of data after the header, found 25") && Contains("several arrays"));
}

TEST_CASE("read_npy_header rejects a damaged header, and says which part", "[data][npy]") {
  CHECK_THAT(refusal("<!DOCTYPE html>"), Contains("does not begin with the signature"));
  CHECK_THAT(refusal_of("[]"), Contains("has '[] "));
  CHECK_THAT(refusal_of(""), Contains("has its end in place of '{'"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False}"), Contains("lacks one of the keys"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"), Contains("has the key 'descr' twice"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'other': 1}"), Contains("has the key 'other'."));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"), Contains("in place of True or False"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}"), Contains("in place of a tuple"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}"), Contains("in place of a comma"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), Contains("in place of a number from 0"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}"), Contains("from 0 to 2^63 - 1"));
  CHECK_THAT(refusal_of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"), Contains("continues after the closing brace"));
  CHECK_THAT(refusal_of("{'descr': '<f4"), Contains("in place of the type of the elements"));
  std::string many = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) many += "1,";
  CHECK_THAT(refusal_of(many + ")}"), Contains("more than 64 dimensions"));
}

TEST_CASE("read_npy rejects a header that announces more than the file holds, without allocating it", "[data][npy]") {
  const auto announced = [](const std::string& shape) {
    const std::string bytes = files::npy<float>("<f4", shape, {1});
    const long before = allocations::bytes;
    const std::string message = files::message_of<pdp::FileError>([&] { static_cast<void>(parse<float>(bytes)); }).value();
    CHECK(allocations::bytes - before < 100'000);
    return message;
  };
  CHECK_THAT(announced("(1000000000000,)"), Contains("expected 4000000000000 bytes") && Contains("found 4"));
  CHECK_THAT(announced("(4294967296, 4294967296)"), Contains("multiply to more than 2^63"));
  std::string long_header = files::npy<float>("<f4", "(1,)", {1});
  long_header[6] = 2;
  long_header.replace(8, 4, std::string{"\xff\xff\xff\xff"});
  CHECK_THAT(refusal(long_header), Contains("its header has 4294967295 bytes, more than 65536"));
}

TEST_CASE("read_npy rejects another element type than the program's, with both names", "[data][npy]") {
  const std::string bytes = files::npy<double>("<f8", "(1,)", {1});
  CHECK_THAT(files::message_of<pdp::FileError>([&] { static_cast<void>(parse<float>(bytes)); }).value(),
             Contains("expected elements of type float32, found float64") && Contains("a.astype(numpy.float32)"));
}

}  // namespace npy_test
