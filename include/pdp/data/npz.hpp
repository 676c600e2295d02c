#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/element_type.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/npy.hpp>

/// Reads NumPy's .npz files, archives of .npy files, by libzip (https://libzip.org).
namespace pdp::data {

/// A .npz file, as numpy.savez or numpy.savez_compressed writes it. One thread at a time may use it.
class Npz {
 public:
  /// Opens a file, or an archive in memory. Throws FileError if it is no archive, is truncated, or has two arrays of one name.
  explicit Npz(Input input);
  explicit Npz(const std::filesystem::path& path) : Npz{Input{path}} {}
  Npz(Npz&& other) noexcept;
  Npz& operator=(Npz&&) = delete;
  ~Npz();

  /// Returns the names of the arrays, in their order in the file.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Returns the bytes of an array's .npy file. Throws FileError if there is no such array, or if it is damaged, encrypted, compressed by
  /// another method than deflate, or larger than deflate could have made it.
  [[nodiscard]] std::vector<std::byte> npy_file(std::string_view name) const;
  /// Returns the name of an array in messages: that of the file and that of the array.
  [[nodiscard]] std::string shown_name(std::string_view name) const;

  /// Reads an array. T must be the type of its elements. Throws FileError as npy_file() and read_npy() do.
  template <Element T>
  [[nodiscard]] Npy<T> read(std::string_view name) const {
    const std::vector<std::byte> bytes = npy_file(name);
    return read_npy<T>(Input{bytes, shown_name(name)});
  }

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The arrays of a .npz file that become a dataset, as numpy.savez("set.npz", x=..., y=...) names them.
struct NpzOptions {
  std::string inputs = "x";   // [samples, ...]: float32, float64, int32, int64, uint16 or uint8
  std::string targets = "y";  // [samples] or [samples, outputs]
};

/// Reads a dataset from a .npz file into memory. T is std::int32_t for class numbers, and float for other targets. The arrays become
/// samples and targets as those of Mapped{map_npy(x), map_npy(y)} do. Throws FileError as Npz, map_npy and Mapped do.
template <TargetElement T>
[[nodiscard]] InMemory<T> read_npz(const Npz& file, const NpzOptions& options = {});
template <TargetElement T>
[[nodiscard]] InMemory<T> read_npz(const std::filesystem::path& path, const NpzOptions& options = {}) {
  return read_npz<T>(Npz{path}, options);
}

#ifdef PDP_SEPARATE_NPZ
extern template InMemory<std::int32_t> read_npz(const Npz&, const NpzOptions&);
extern template InMemory<float> read_npz(const Npz&, const NpzOptions&);
#endif

}  // namespace pdp::data

#ifndef PDP_SEPARATE_NPZ
#include <pdp/data/source/npz.hpp>
#endif
