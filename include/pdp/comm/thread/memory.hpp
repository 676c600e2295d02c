#pragma once

#include <cstddef>
#include <memory>

#include <pdp/comm/message/transport.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm::thread {

/// Memory that other threads open by its address. It is freed when its last owner is gone. It is zeroed, and the system allocates each page
/// on first access.
class Memory {
 public:
  static Memory create(std::size_t bytes);
  /// Opens memory of another thread, which must keep it until this returns.
  static Memory open(const SharedAddress& address);

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] SharedAddress address() const;
  void close() {}
  void populate() {}

 private:
  struct Pages;
  explicit Memory(std::shared_ptr<Pages> pages);

  std::shared_ptr<Pages> pages_;
};

}  // namespace pdp::comm::thread

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/thread/source/memory.hpp>
#endif
