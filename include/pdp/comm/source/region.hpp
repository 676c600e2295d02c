#pragma once

/// Definitions for pdp/comm/region.hpp; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <pdp/comm/region.hpp>
#include <pdp/core/buffer.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

PDP_INLINE Region::Region(std::byte* data, std::size_t size, std::shared_ptr<void> owner, std::vector<std::byte*> parts)
    : owner_{std::move(owner)}, parts_{std::move(parts)}, data_{data}, size_{size} {}
PDP_INLINE Region::Region(Region&& other) noexcept
    : owner_{std::move(other.owner_)},
      parts_{std::move(other.parts_)},
      data_{std::exchange(other.data_, nullptr)},
      size_{std::exchange(other.size_, 0)} {}
PDP_INLINE Region& Region::operator=(Region&& other) noexcept {
  owner_ = std::move(other.owner_);
  parts_ = std::move(other.parts_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}
PDP_INLINE Region::~Region() = default;

PDP_INLINE Region Region::ordinary(std::size_t bytes) {
  if (bytes == 0) return {};
  auto* const data = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  std::memset(data, 0, bytes);
  return {data, bytes, std::shared_ptr<void>{data, [](void* memory) { ::operator delete (memory, std::align_val_t{alignment}); }}};
}

}  // namespace pdp::comm
