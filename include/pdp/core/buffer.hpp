#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/shape.hpp>

namespace pdp {

/// The alignment of buffers and tensors in bytes: a cache line, and the widest vector register of a CPU.
constexpr std::size_t alignment = 64;

/// Rounds a count of elements up to a multiple of `alignment` bytes, so that the next tensor in the same memory is aligned, too.
template <class T>
constexpr Index padded(Index elements) {
  constexpr Index block = std::max<Index>(1, as_index(alignment / sizeof(T)));
  return (elements + block - 1) / block * block;
}

/// An array of trivial elements in memory that it owns, aligned to `alignment` and zero at first. Its size is fixed; a moved-from Buffer is
/// empty.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index elements) : size_{elements} {
    const auto bytes = as_size(padded<T>(elements)) * sizeof(T);
    if (bytes > 0) memory_.reset(static_cast<T*>(::operator new (bytes, std::align_val_t{alignment})));
    std::fill_n(memory_.get(), elements, T{});
  }

  [[nodiscard]] T* data() { return memory_.get(); }
  [[nodiscard]] const T* data() const { return memory_.get(); }
  [[nodiscard]] Index size() const { return memory_ ? size_ : 0; }
  [[nodiscard]] std::span<T> span() { return {data(), as_size(size())}; }
  [[nodiscard]] std::span<const T> span() const { return {data(), as_size(size())}; }

 private:
  struct Free {
    void operator()(T* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };
  std::unique_ptr<T, Free> memory_;
  Index size_ = 0;
};

}  // namespace pdp
