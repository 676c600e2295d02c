#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

/// Memory that a communicator has allocated for the values of its calls. It is zeroed, and aligned to `alignment` bytes (core/buffer.hpp).
class Region {
 public:
  Region() = default;
  /// `owner` frees the memory when its last copy is gone. `parts`: the memory of each rank of the group, if this rank can access it.
  Region(std::byte* data, std::size_t size, std::shared_ptr<void> owner, std::vector<std::byte*> parts = {});
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  /// Allocates ordinary memory of this process, for backends without memory of their own.
  static Region ordinary(std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the memory of each rank of the group, of size() bytes each; empty if this rank cannot access it.
  [[nodiscard]] std::span<std::byte* const> parts() const { return parts_; }

 private:
  std::shared_ptr<void> owner_;
  std::vector<std::byte*> parts_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Values in memory that a communicator has allocated for its calls, returned by world.allocate<T>(count). Calls take the values, or a part
/// of them, like any other span. They are as fast with this memory as the backend allows: for example, ranks that share memory reduce in
/// place. `of_device`: the values are in device memory, which the host cannot access.
template <Element T, bool of_device = false>
class Registered {
 public:
  Registered() = default;
  explicit Registered(Region region) : region_{std::move(region)} {}

  [[nodiscard]] T* data() { return reinterpret_cast<T*>(region_.data()); }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(region_.data()); }
  [[nodiscard]] std::size_t size() const { return region_.size() / sizeof(T); }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size(); }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size(); }
  [[nodiscard]] T& operator[](std::size_t i) { return const_cast<T&>(std::as_const(*this)[i]); }
  [[nodiscard]] const T& operator[](std::size_t i) const {
    static_assert(!of_device,
                  "pdp: these values are in GPU memory, which the host cannot access; cuda::on_host(device, values.span()) copies "
                  "them to the host");
    return data()[i];
  }
  [[nodiscard]] std::span<T> span() { return {data(), size()}; }
  [[nodiscard]] std::span<const T> span() const { return {data(), size()}; }

  /// Returns whether this rank can access the values of all ranks of the group, by of(rank).
  [[nodiscard]] bool is_common() const { return !region_.parts().empty(); }
  /// Returns the values of another rank of the group, or of this one. Call it only if is_common() returns true. Ranks must agree on which
  /// rank accesses which values, and need a barrier between a write of one rank and an access by another.
  [[nodiscard]] std::span<T> of(int rank) { return {reinterpret_cast<T*>(region_.parts()[as_size(rank)]), size()}; }

 private:
  Region region_;
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/region.hpp>
#endif
