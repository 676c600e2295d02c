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
  explicit Reader(std::span<const std::byte> bytes, std::weak_ptr<Core> core = {}) : bytes_{bytes}, core_{std::move(core)} {}

  /// Returns this rank's remote calls, for references to remote objects.
  [[nodiscard]] const std::weak_ptr<Core>& core() const { return core_; }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T get() {
    T value;
    std::memcpy(static_cast<void*>(&value), take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// Returns the size of a sequence whose elements take at least `smallest` bytes each. Throws RemoteDataError if so many do not fit.
  [[nodiscard]] std::size_t count(std::size_t smallest) {
    const auto count = get<std::uint64_t>();
    if (smallest > 0 && count > largest / smallest) fail("a sequence is too long");
    return static_cast<std::size_t>(count);
  }
  /// Reads an array into its memory, now or when its message arrives.
  void array(std::span<std::byte> into) {
    if (into.size() > Writer::largest_copy)
      arrays_.push_back(into);
    else if (!into.empty())
      std::memcpy(into.data(), take(into.size()).data(), into.size());
  }
  /// Returns the number of bytes that are left.
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }
  /// Throws unless everything has been read.
  void finish(std::size_t arrays) const {
    if (!bytes_.empty() || arrays_.size() != arrays) fail("its length is wrong");
  }
  [[nodiscard]] std::span<const std::span<std::byte>> arrays() const { return arrays_; }

  [[noreturn]] static void fail(const char* why) {
    throw Error{text("a message of another rank cannot be decoded: ", why, "; do all ranks run the same program?")};
  }

 private:
  static constexpr std::uint64_t largest = std::uint64_t{1} << 48;  // bytes: more than the memory of any machine

  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size()) fail("it is too short");
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  std::vector<std::span<std::byte>> arrays_;
  std::weak_ptr<Core> core_;
};

}  // namespace pdp::rpc
