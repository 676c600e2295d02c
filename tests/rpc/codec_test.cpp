#include <pdp/rpc/codec.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace codec_test {

namespace rpc = pdp::rpc;

namespace {

enum class Color : std::uint8_t { red, green };
struct Inner {
  std::vector<double> values;
  std::optional<std::string> name;
  friend bool operator==(const Inner&, const Inner&) = default;
};
struct Outer {
  int number;
  Color color;
  std::array<float, 3> point;
  std::vector<Inner> parts;
  std::pair<bool, char> pair;
  friend bool operator==(const Outer&, const Outer&) = default;
};
class Hidden {
 public:
  Hidden() = default;
  Hidden(int a, std::string b) : a_{a}, b_{std::move(b)} {}
  void travel(auto&& visit) { visit(a_, b_); }
  friend bool operator==(const Hidden&, const Hidden&) = default;

 private:
  int a_ = 0;
  std::string b_;
};

/// Encodes a value and decodes it as another rank does.
template <class T>
T sent(const T& value) {
  rpc::Writer writer;
  rpc::Codec<T>::write(writer, value);
  std::vector<std::uint64_t> sizes;
  for (const auto& array : writer.arrays()) sizes.push_back(array.size());
  T into{};
  rpc::Reader reader{writer.bytes(), sizes};
  rpc::Codec<T>::read(reader, into);
  reader.finish();
  for (std::size_t i = 0; i < sizes.size(); ++i) std::memcpy(reader.arrays()[i].data(), writer.arrays()[i].data(), sizes[i]);
  return into;
}
template <class T>
bool arrives(const T& value) {
  return sent(value) == value;
}

}  // namespace

TEST_CASE("Codec keeps values of every kind", "[rpc][codec]") {
  CHECK(arrives(7));
  CHECK(arrives(std::numeric_limits<double>::infinity()));
  CHECK(arrives(Color::green));
  CHECK(arrives(std::vector<bool>{true, false, true}));
  CHECK(arrives(std::vector<std::string>{"", "a", std::string(5000, 'x')}));
  CHECK(arrives(std::tuple{1, 2.5f, std::string{"three"}, std::vector<std::uint8_t>{4}}));
  CHECK(arrives(std::vector<std::optional<std::array<std::int64_t, 2>>>{std::nullopt, std::array<std::int64_t, 2>{1, -1}}));
  CHECK(arrives(Hidden{3, "hidden"}));
  for (const std::size_t size : {0u, 1u, 128u, 129u, 1000u}) {  // 128 doubles are copied, more are not
    const Inner inner{std::vector<double>(size, 0.5), size % 2 == 0 ? std::nullopt : std::optional<std::string>{"odd"}};
    CHECK(arrives(Outer{-5, Color::red, {1, 2, 3}, {inner, {}, inner}, {true, 'c'}}));
  }
}

TEST_CASE("Codec overwrites the default of a member", "[rpc][codec]") {
  struct Options {
    std::optional<int> number = 3;
    std::vector<int> list{1, 2};
  };
  const Options arrived = sent(Options{std::nullopt, {}});
  CHECK_FALSE(arrived.number);
  CHECK(arrived.list.empty());
}

TEST_CASE("Reader rejects data that are cut off, too long or changed, and allocates nothing for them", "[rpc][codec]") {
  rpc::Writer writer;
  const Outer value{-5, Color::red, {1, 2, 3}, {{{1, 2}, "name"}, {std::vector<double>(500), std::nullopt}}, {true, 'c'}};
  rpc::Codec<Outer>::write(writer, value);
  const std::vector<std::byte> bytes(writer.bytes().begin(), writer.bytes().end());
  const std::vector<std::uint64_t> sizes{writer.arrays()[0].size()};
  const auto read = [](std::span<const std::byte> data, std::span<const std::uint64_t> arrays) {
    Outer into{};
    rpc::Reader reader{data, arrays};
    rpc::Codec<Outer>::read(reader, into);
    reader.finish();
  };
  CHECK_NOTHROW(read(bytes, sizes));
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_THROWS_AS(read(std::span{bytes}.first(size), sizes), pdp::Error);
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_THROWS_AS(read(longer, sizes), pdp::Error);
  CHECK_THROWS_AS(read(bytes, {}), pdp::Error);
  CHECK_THROWS_AS(read(bytes, std::vector<std::uint64_t>{sizes[0] + 8}), pdp::Error);
  CHECK_THROWS_AS(read(bytes, std::vector<std::uint64_t>{sizes[0], 2000}), pdp::Error);
  std::mt19937 random{1};
  for (int i = 0; i < 10'000; ++i) {
    auto changed = bytes;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    try {
      read(changed, sizes);
    } catch (const pdp::Error&) {  // most changes are found; none may allocate much or crash
    }
  }
}

}  // namespace codec_test
