#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/requirements.hpp>

namespace pdp::rpc {

/// Encodes values for another rank. Small values are copied. Large arrays are borrowed until the message has been sent, so that no bytes
/// are copied on the sending rank.
class Writer {
 public:
  /// Arrays of up to this many bytes are copied.
  static constexpr std::size_t largest_copy = 1024;

  /// Returns a writer that is used only to learn how large a value is. A reference in it gives no weight away.
  static Writer measuring() {
    Writer writer;
    writer.measures_ = true;
    return writer;
  }
  [[nodiscard]] bool measures() const { return measures_; }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(std::as_bytes(std::span{&value, 1})); }
  /// Writes the bytes of an array. Its size must have been written before. A large array must stay unchanged until the message has been
  /// sent; keep() can own it.
  void array(std::span<const std::byte> bytes) {
    if (bytes.size() > largest_copy)
      arrays_.push_back(bytes);
    else
      append(bytes);
  }
  /// Keeps memory of borrowed arrays until the message has been sent.
  void keep(std::shared_ptr<const void> owner) { kept_.push_back(std::move(owner)); }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<const std::span<const std::byte>> arrays() const { return arrays_; }
  /// Returns the number of encoded bytes, large arrays included.
  [[nodiscard]] std::size_t total() const {
    std::size_t sum = bytes_.size();
    for (const auto& array : arrays_) sum += array.size();
    return sum;
  }

 private:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte> bytes_;
  std::vector<std::span<const std::byte>> arrays_;
  std::vector<std::shared_ptr<const void>> kept_;
  bool measures_ = false;
};

}  // namespace pdp::rpc
