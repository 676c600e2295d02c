#include <pdp/core/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "catch.hpp"

using pdp::Buffer;
using pdp::Index;

TEST_CASE("padded rounds a number of elements up to a multiple of 64 bytes", "[core]") {
  static_assert(pdp::padded<float>(0) == 0 && pdp::padded<float>(1) == 16 && pdp::padded<float>(16) == 16 && pdp::padded<float>(17) == 32);
  static_assert(pdp::padded<double>(1) == 8 && pdp::padded<double>(9) == 16);
  static_assert(pdp::padded<std::byte>(65) == 128);
  for (Index elements = 0; elements < 100; ++elements) {
    const Index whole = pdp::padded<float>(elements);
    CHECK((whole % 16 == 0 && whole >= elements && whole < elements + 16));
  }
}

TEMPLATE_TEST_CASE("Buffer is aligned, zero-initialised and of the requested size", "[core]", float, double, std::int32_t, std::byte) {
  const Index elements = GENERATE(as<Index>{}, 0, 1, 15, 16, 17, 1000, 100'003);
  // The allocator may return the memory of `dirty` again, which is then not zero.
  {
    Buffer<TestType> dirty{elements};
    std::ranges::fill(dirty.span(), static_cast<TestType>(77));
  }
  const Buffer<TestType> buffer{elements};
  CHECK(buffer.size() == elements);
  CHECK(buffer.span().size() == static_cast<std::size_t>(elements));
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % pdp::alignment == 0);
  CHECK(std::ranges::all_of(buffer.span(), [](TestType value) { return value == TestType{}; }));
}

TEST_CASE("Moving a Buffer transfers its memory and leaves the source empty", "[core]") {
  Buffer<float> from{5};
  from.span()[4] = 3;
  const float* memory = from.data();

  Buffer<float> to{std::move(from)};
  CHECK(to.data() == memory);
  CHECK(to.size() == 5);
  CHECK(to.span()[4] == 3);
  CHECK(from.size() == 0);  // NOLINT(bugprone-use-after-move): tests the moved-from state
  CHECK(from.span().empty());

  from = std::move(to);
  CHECK(from.data() == memory);
  CHECK(from.size() == 5);
  CHECK(to.span().empty());  // NOLINT(bugprone-use-after-move)

  from = Buffer<float>{2};
  CHECK(from.size() == 2);
  CHECK(from.span()[1] == 0);
}

TEST_CASE("A default-constructed Buffer has no memory", "[core]") {
  const Buffer<float> none;
  CHECK(none.size() == 0);
  CHECK(none.data() == nullptr);
  CHECK(none.span().empty());
}
