#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

class Core;

/// Decodes what a Writer has encoded. Large arrays arrive after the other values, so the Reader only collects their destinations. The
/// values are complete when all arrays have arrived there.
class Reader {
 public:
  /// `sizes`: of the large arrays that follow, in bytes.
  explicit Reader(std::span<const std::byte> bytes, std::span<const std::uint64_t> sizes = {}, std::weak_ptr<Core> core = {})
      : bytes_{bytes}, sizes_{sizes}, core_{std::move(core)} {}

  /// Returns this rank's remote calls, for references to remote objects.
  [[nodiscard]] const std::weak_ptr<Core>& core() const { return core_; }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T get() {
    T value;
    std::memcpy(static_cast<void*>(&value), take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// Reads a bool. Throws Error for any other byte than 0 and 1.
  [[nodiscard]] bool flag() {
    const auto byte = get<std::uint8_t>();
    if (byte > 1) fail("a bool is neither true nor false");
    return byte == 1;
  }
  /// Returns the size of a sequence of which each element takes at least one byte. Throws Error if so many cannot have been sent, so that
  /// a wrong size allocates no memory.
  [[nodiscard]] std::size_t count() {
    const auto count = get<std::uint64_t>();
    if (count > bytes_.size()) fail("a sequence is too long");
    return static_cast<std::size_t>(count);
  }
  /// Returns the number of elements of an array that was written by Writer::array(). Throws as count().
  [[nodiscard]] std::size_t array_count(std::size_t element) {
    const auto count = get<std::uint64_t>();
    const std::uint64_t next = arrays_.size() < sizes_.size() ? sizes_[arrays_.size()] : 0;
    if (count > Writer::largest_copy / element ? count != next / element || next % element != 0 : count * element > bytes_.size())
      fail("an array has another size");
    return static_cast<std::size_t>(count);
  }
  /// Reads an array into its memory, now or when its message arrives.
  void array(std::span<std::byte> into) {
    if (into.size() > Writer::largest_copy) {
      if (arrays_.size() >= sizes_.size() || sizes_[arrays_.size()] != into.size()) fail("an array has another size");
      arrays_.push_back(into);
    } else if (!into.empty()) {
      std::memcpy(into.data(), take(into.size()).data(), into.size());
    }
  }
  /// Returns the number of bytes that are left.
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }
  /// Throws unless everything has been read.
  void finish() const {
    if (!bytes_.empty() || arrays_.size() != sizes_.size()) fail("its length is wrong");
  }
  [[nodiscard]] std::span<const std::span<std::byte>> arrays() const { return arrays_; }

  [[noreturn]] static void fail(const char* why) {
    throw Error{text("a message of another rank cannot be decoded: ", why, "; do all ranks run the same program?")};
  }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size()) fail("it is too short");
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  std::span<const std::uint64_t> sizes_;
  std::vector<std::span<std::byte>> arrays_;
  std::weak_ptr<Core> core_;
};

}  // namespace pdp::rpc
