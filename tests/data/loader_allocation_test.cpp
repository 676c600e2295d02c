#include <pdp/data/loader.hpp>

#include <cstdlib>
#include <new>

#include <pdp/data/in_memory.hpp>

#include "catch.hpp"
#include "data/allocations.hpp"

// Replaces operator new to count the allocations of this executable on all threads.

namespace {

void* counted(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  ++allocations::count;
  allocations::bytes += static_cast<long>(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* counted_or_throw(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* memory = counted(size, alignment)) return memory;
  throw std::bad_alloc{};
}

/// Not inlined, as g++ would warn of a free() of memory from operator new.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<std::size_t>(alignment)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace data = pdp::data;
using pdp::Index;

TEST_CASE("Loader allocates nothing after construction, on either thread", "[data][loader]") {
  constexpr Index samples = 1'003;
  const data::InMemory set{pdp::Shape{7}, std::vector<float>(samples * 7), std::vector<std::int32_t>(samples)};
  data::Loader loader{set, data::Sampler{samples, 64, /*seed*/ 1}, data::Shard{1, 3}};

  const long before = allocations::count;
  Index rows = 0;
  for (Index epoch = 0; epoch < 5; ++epoch) {
    loader.start(epoch);
    while (const auto* batch = loader.next()) rows += batch->rows;
  }
  loader.start(5);
  const long during = allocations::count - before;

  CHECK(during == 0);
  CHECK(rows > 5 * samples / 3 - 100);
}

TEST_CASE("allocations::count counts each call of operator new", "[data][loader]") {
  const long before = allocations::count;
  auto* vector = new std::vector<int>(100);
  const long during = allocations::count - before;
  delete vector;
  CHECK(during == 2);
}
