#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cuda/handle.hpp>

namespace pdp::cuda {

/// Owned bytes of a GPU's memory, zero at first. They come from the device's pool and are freed in the order of its stream.
class Block {
 public:
  Block() = default;
  /// Throws DeviceError if too little memory is free.
  Block(const Device& device, std::size_t bytes);
  Block(Block&& other) noexcept
      : state_{std::move(other.state_)}, memory_{std::exchange(other.memory_, nullptr)}, bytes_{std::exchange(other.bytes_, 0)} {}
  Block& operator=(Block&& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block();

  [[nodiscard]] void* data() const { return memory_; }

 private:
  std::shared_ptr<State> state_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Trivial elements in a GPU's memory, zero at first.
template <class T>
class Memory {
 public:
  Memory() = default;
  /// Throws DeviceError if too little memory is free, and ShapeError if the number of elements is negative or too large.
  Memory(const Device& device, Index elements) : block_{device, bytes_of(elements)}, size_{as_size(elements)} {}

  [[nodiscard]] T* data() { return static_cast<T*>(block_.data()); }
  [[nodiscard]] const T* data() const { return static_cast<const T*>(block_.data()); }
  [[nodiscard]] Index size() const { return data() == nullptr ? 0 : as_index(size_); }
  [[nodiscard]] std::span<T> span() { return {data(), as_size(size())}; }
  [[nodiscard]] std::span<const T> span() const { return {data(), as_size(size())}; }

 private:
  static std::size_t bytes_of(Index elements) {
    if (elements < 0 || elements > std::numeric_limits<Index>::max() / as_index(sizeof(T)))
      throw ShapeError{text("cannot allocate GPU memory for ", elements, " elements")};
    return as_size(elements) * sizeof(T);
  }

  Block block_;
  std::size_t size_ = 0;
};

struct Reading;

/// Bytes that are being copied from a GPU to the host, with the values that they have when the stream reaches the copy.
class ReadBytes {
 public:
  static constexpr std::size_t most = 128;

  /// Starts the copy. `bytes`: at most `most`.
  ReadBytes(const Device& device, const void* value, std::size_t bytes);
  ReadBytes(ReadBytes&& other) noexcept : state_{std::move(other.state_)}, reading_{std::exchange(other.reading_, nullptr)} {}
  ReadBytes& operator=(ReadBytes&& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(reading_, other.reading_);
    return *this;
  }
  ~ReadBytes();

  /// Returns whether the copy is complete.
  [[nodiscard]] bool is_there() const;
  /// Waits for the copy and returns its bytes, which live as long as this object. is_there() and get() throw DeviceError if work of the
  /// device has failed.
  [[nodiscard]] const void* get() const;

 private:
  std::shared_ptr<State> state_;
  Reading* reading_ = nullptr;
};

/// A value that is being copied from a GPU to the host; see ReadBytes.
template <class T>
class Read {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= ReadBytes::most);

 public:
  Read(const Device& device, const T* value) : bytes_{device, value, sizeof(T)} {}

  [[nodiscard]] bool is_there() const { return bytes_.is_there(); }
  [[nodiscard]] T get() const {
    T value;
    std::memcpy(&value, bytes_.get(), sizeof value);
    return value;
  }

 private:
  ReadBytes bytes_;
};

// Untyped forms of the functions below.
void zero_bytes(const Device& device, void* memory, std::size_t bytes);
void upload_bytes(const Device& device, const void* from, void* to, std::size_t bytes);
void copy_bytes(const Device& device, const void* from, void* to, std::size_t bytes);
void download_bytes(const Device& device, const void* from, void* to, std::size_t bytes);
void store_bytes(const Device& device, const void* value, std::size_t bytes, void* to);

template <class T>
[[nodiscard]] Memory<T> allocate(const Device& device, Index elements) {
  return {device, elements};
}

template <class T>
void zero(const Device& device, std::span<T> values) {
  zero_bytes(device, values.data(), values.size_bytes());
}

/// Copies from the host through pinned memory, so `from` may change as soon as the call returns. The copy comes before operations called
/// later. The host waits only if no pinned memory is free.
template <class T>
void upload(const Device& device, std::span<const T> from, T* to) {
  upload_bytes(device, from.data(), to, from.size_bytes());
}

/// reserve_uploads() allocates pinned memory for uploads of these sizes, in bytes. takes_at_once() then returns whether they can start
/// without a wait for earlier work of the device. Uploads of more than some 64 MB together always wait.
void reserve_uploads(const Device& device, std::initializer_list<std::size_t> bytes);
[[nodiscard]] bool takes_at_once(const Device& device, std::initializer_list<std::size_t> bytes);

/// Copies within the device.
template <class T>
void copy(const Device& device, std::span<const T> from, T* to) {
  copy_bytes(device, from.data(), to, from.size_bytes());
}

/// Waits until all work called so far is complete, then copies to the host. Throws DeviceError if some of it has failed.
template <class T>
[[nodiscard]] std::vector<T> on_host(const Device& device, std::span<const T> values) {
  std::vector<T> copied(values.size());
  download_bytes(device, values.data(), copied.data(), values.size_bytes());
  return copied;
}

/// Starts a copy of a value to the host. Does not wait.
template <class T>
[[nodiscard]] Read<T> read_later(const Device& device, const T* value) {
  return {device, value};
}

/// Writes a value to GPU memory. The value is an argument of a kernel launch, so it may change as soon as the call returns.
template <class T>
void store(const Device& device, const T& value, T* to) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 128);
  store_bytes(device, &value, sizeof value, to);
}

}  // namespace pdp::cuda
