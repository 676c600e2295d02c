#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::data {

/// The bytes that a reader parses: a file's, or some in memory (which the caller keeps alive). Nothing is read before it is asked for.
class Input {
 public:
  /// Opens a regular file. Throws FileError.
  explicit Input(const std::filesystem::path& path);

  /// `name` stands for the path in messages.
  explicit Input(std::span<const std::byte> bytes, std::string name = "bytes in memory");

  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `bytes` from `offset` on and returns how many there were: fewer than asked for only at the end. Throws FileError.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  [[noreturn]] void fail(const char* verb, int reason) const;

  std::string name_;
  int file_ = -1;  // -1: the bytes are those of memory_
  std::span<const std::byte> memory_;
  std::uint64_t size_ = 0;
};

/// Reads an Input from its beginning on.
class InputBytes {
 public:
  explicit InputBytes(const Input& input) : input_{&input} {}

  /// Fills `bytes` and returns how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::byte> bytes);

 private:
  const Input* input_;
  std::uint64_t offset_ = 0;
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/input.hpp>
#endif
