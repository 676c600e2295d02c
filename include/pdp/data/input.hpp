#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::data {

/// A source of bytes with random access: a file, or memory that the caller keeps alive. Nothing is read ahead.
class Input {
 public:
  /// Opens a file. Throws FileError if it cannot be opened or is not a regular file.
  explicit Input(const std::filesystem::path& path);

  /// Reads from memory. `name` takes the place of the path in error messages.
  explicit Input(std::span<const std::byte> bytes, std::string name = "bytes in memory");

  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Returns the descriptor of the file, which the Input owns; -1 if the bytes are in memory.
  [[nodiscard]] int descriptor() const { return file_; }
  /// Returns the bytes in memory; an empty span if this is a file.
  [[nodiscard]] std::span<const std::byte> memory() const { return memory_; }

  /// Fills `bytes` from `offset` on and returns the number of bytes read, which is less than bytes.size() only at the end. Throws FileError
  /// if reading fails.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  [[noreturn]] void fail(const char* verb, int reason) const;

  std::string name_;
  int file_ = -1;  // -1: the bytes are in memory_
  std::span<const std::byte> memory_;
  std::uint64_t size_ = 0;
};

/// Reads an Input sequentially, from its beginning. Borrows the Input.
class InputBytes {
 public:
  explicit InputBytes(const Input& input) : input_{&input} {}

  /// Fills `bytes` and returns the number of bytes read, which is less than bytes.size() only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  const Input* input_;
  std::uint64_t offset_ = 0;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/input.hpp>
#endif
