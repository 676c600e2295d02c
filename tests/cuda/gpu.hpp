#pragma once

#include <pdp/cpu/cpu.hpp>
#include <pdp/cuda/device.hpp>

#include <iostream>
#include <optional>
#include <span>
#include <vector>

/// Code that the tests of cuda/ share. They are linked twice: with a stand-in for CUDA that runs anywhere, and with CUDA for machines
/// with a GPU. So they include no header of CUDA.
namespace gpu {

/// Returns the GPU that tests compute on. Without one, prints the reason and returns nothing.
inline std::optional<pdp::cuda::Device> device(const pdp::cuda::DeviceOptions& options = {}) {
  try {
    return pdp::cuda::Device{options};
  } catch (const pdp::ConfigError& error) {
    std::cout << "skipped: " << error.what() << '\n';
    return {};
  }
}

/// A copy of host values in the memory of a device.
template <class T>
class Copy {
 public:
  Copy(const pdp::cuda::Device& device, const std::vector<T>& values)
      : device_{device}, memory_{allocate<T>(device, static_cast<pdp::Index>(values.size()))} {
    upload(device, std::span<const T>{values}, memory_.data());
  }

  [[nodiscard]] T* data() { return memory_.data(); }
  [[nodiscard]] std::span<T> span() { return memory_.span(); }
  [[nodiscard]] std::span<const T> read() const { return memory_.span(); }
  [[nodiscard]] pdp::Matrix<T> matrix(pdp::Index rows, pdp::Index cols) { return {memory_.data(), rows, cols}; }
  [[nodiscard]] pdp::Matrix<const T> matrix(pdp::Index rows, pdp::Index cols) const { return {memory_.data(), rows, cols}; }
  [[nodiscard]] std::vector<T> values() const { return on_host(device_, memory_.span()); }

 private:
  const pdp::cuda::Device& device_;
  pdp::cuda::Memory<T> memory_;
};

}  // namespace gpu
