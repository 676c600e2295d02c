#pragma once

/// Definitions for pdp/comm/thread/memory.hpp; see pdp/core/separate_compilation.hpp.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <pdp/comm/message/transport.hpp>
#include <pdp/comm/thread/memory.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm::thread {

struct Memory::Pages : std::enable_shared_from_this<Pages> {
  explicit Pages(std::size_t size) : bytes{size} {
    void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc{};
    data = static_cast<std::byte*>(made);
  }
  Pages(Pages&&) = delete;
  ~Pages() { ::munmap(data, bytes); }

  std::size_t bytes;
  std::byte* data = nullptr;
};

PDP_INLINE Memory::Memory(std::shared_ptr<Pages> pages) : pages_{std::move(pages)} {}
PDP_INLINE Memory Memory::create(std::size_t bytes) { return Memory{std::make_shared<Pages>(bytes)}; }
// NOLINTNEXTLINE(performance-no-int-to-ptr): ranks that are threads exchange pointers as numbers
PDP_INLINE Memory Memory::open(const SharedAddress& address) { return Memory{reinterpret_cast<Pages*>(address.place)->shared_from_this()}; }

PDP_INLINE std::byte* Memory::data() const { return pages_->data; }
PDP_INLINE std::size_t Memory::size() const { return pages_->bytes; }
PDP_INLINE SharedAddress Memory::address() const { return {.place = reinterpret_cast<std::uintptr_t>(pages_.get())}; }

}  // namespace pdp::comm::thread
