#pragma once

#include <array>
#include <concepts>
#include <span>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/engine/batch.hpp>

namespace pdp::engine {

/// Brings batches into memory that a device can read. If the device cannot read the caller's memory, the batch is copied to memory that is
/// allocated here. `Sample` is the caller's element type, T that of the first layer.
template <class Sample, class T, class Target, class D>
class BatchInput {
  static constexpr bool rounds = !std::same_as<T, Sample>;

 public:
  /// `rows`: the largest number of rows of a batch. `width`: values of a sample. `targets`: target elements of a sample.
  BatchInput(const D& device, Index rows, Index width, Index targets) {
    if constexpr (rounds) rounded_ = allocate<T>(device, rows * width);
    if constexpr (!D::uses_host_memory) {
      input_ = allocate<Sample>(device, rows * width);
      targets_ = allocate<Target>(device, rows * targets);
      reserve_uploads(device, {input_.span().size_bytes(), targets_.span().size_bytes()});
    }
  }

  /// From now on, also copies batches that already lie on the device. So the device reads all batches at one address.
  void copy_always() { places_[0].is_left = places_[1].is_left = true; }

  /// Returns the batch in memory that the device can read. Copies and rounds it if necessary.
  [[nodiscard]] Batch<T, Target> bring(const D& device, Batch<Sample, Target> batch, bool training) {
    if constexpr (!D::uses_host_memory) {
      if (!batch.on_device || is_elsewhere(batch, places_[training ? 0 : 1])) {
        const auto bring = [&]<class E>(std::span<const E> from, E* to) {
          batch.on_device ? copy(device, from, to) : upload(device, from, to);
        };
        bring(batch.x.values(), input_.data());
        bring(batch.targets, targets_.data());
        batch.x.data = input_.data();
        batch.targets = targets_.span().first(batch.targets.size());
      }
    }
    if constexpr (rounds) {
      const Matrix<T> rounded{rounded_.data(), batch.x.rows, batch.x.cols};
      convert(device, batch.x, rounded);
      return {rounded, batch.targets};
    } else {
      return {batch.x, batch.targets};
    }
  }

 private:
  /// The address of the caller's batches on the device.
  struct Place {
    const Sample* x = nullptr;
    const Target* targets = nullptr;
    bool is_left = false;  // some batches were at other addresses
  };
  /// Returns whether a batch must be copied. Recorded work reads a batch at a fixed address. So when batches of steps, or of evaluations,
  /// have come at several addresses, all later ones are copied to one address.
  static bool is_elsewhere(const Batch<Sample, Target>& batch, Place& place) {
    if (batch.x.rows == 0) return place.is_left;
    if (place.x == nullptr) place = {batch.x.data, batch.targets.data(), place.is_left};
    place.is_left = place.is_left || place.x != batch.x.data || place.targets != batch.targets.data();
    return place.is_left;
  }

  DeviceMemory<D, Sample> input_;
  DeviceMemory<D, Target> targets_;
  DeviceMemory<D, T> rounded_;
  std::array<Place, 2> places_{};  // of steps, of evaluations
};

}  // namespace pdp::engine
