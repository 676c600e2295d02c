#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <pdp/comm/message/together/meeting.hpp>
#include <pdp/comm/message/transport.hpp>

namespace pdp::comm::thread {

/// Memory that threads open by its address. It lasts until the last of its owners is gone. Its pages are made when they are touched.
class Memory {
 public:
  static Memory create(std::size_t bytes) { return Memory{std::make_shared<Pages>(bytes)}; }
  /// Of another thread, which keeps it until then.
  static Memory open(const SharedAddress& address) { return Memory{reinterpret_cast<Pages*>(address.place)->shared_from_this()}; }

  [[nodiscard]] std::byte* data() const { return pages_->data; }
  [[nodiscard]] std::size_t size() const { return pages_->bytes; }
  [[nodiscard]] SharedAddress address() const { return {.place = reinterpret_cast<std::uintptr_t>(pages_.get())}; }
  void close() {}
  void populate() {}

 private:
  struct Pages : std::enable_shared_from_this<Pages> {
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
  explicit Memory(std::shared_ptr<Pages> pages) : pages_{std::move(pages)} {}

  std::shared_ptr<Pages> pages_;
};

/// Every thread sees all memory.
struct OneSpace {
  [[nodiscard]] static together::Source find(const std::byte* values, std::size_t) {
    return {.memory = 1, .offset = reinterpret_cast<std::uintptr_t>(values)};
  }
  [[nodiscard]] static std::byte* at(const together::Source& source, int) { return reinterpret_cast<std::byte*>(source.offset); }
};
static_assert(together::Sources<OneSpace>);

}  // namespace pdp::comm::thread
