#pragma once

#include <algorithm>
#include <concepts>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>

namespace pdp::engine {

/// The model's output for the rows of a prediction, in host memory. It is valid until the next call.
template <class Output, class T, class D>
class PredictedOutput {
 public:
  /// `ranks`: size of the group that the columns of the output may be divided over. `output`: shape of a sample's output, of all ranks.
  PredictedOutput(int ranks, const Shape& output) : ranks_{ranks}, own_last_{output.last() / ranks} {}

  /// Returns the output if this rank has all of its columns.
  [[nodiscard]] Matrix<const Output> whole(const D& device, Matrix<const T> own) {
    if constexpr (D::uses_host_memory && std::same_as<T, Output>) {
      return own;
    } else {
      const auto& read = on_host(device, own.values());
      output_.assign(read.begin(), read.end());
      return {output_.data(), own.rows, own.cols};
    }
  }

  /// Returns the output if each rank of a group has some of its columns. gather(own, all) collects the columns of all ranks.
  template <class Gather>
  [[nodiscard]] Matrix<const Output> join(const D& device, Matrix<const T> own, const Gather& gather) {
    const Index size = own.size(), count = ranks_;
    if (gathered_.size() < size * count) gathered_ = allocate<T>(device, size * count);
    const std::span<T> all = gathered_.span().first(as_size(size * count));
    gather(own.values(), all);
    const auto& read = on_host(device, std::span<const T>{all});
    output_.resize(all.size());
    const Matrix<Output> whole{output_.data(), own.rows, own.cols * count};
    // The last dimension is divided.
    const Index vectors = own_last_ == 0 ? 0 : size / own_last_;
    for (Index v = 0; v < vectors; ++v)
      for (Index rank = 0; rank < count; ++rank)
        std::copy_n(read.data() + rank * size + v * own_last_, own_last_, whole.data + (v * count + rank) * own_last_);
    return whole;
  }

 private:
  int ranks_;
  Index own_last_;               // of the last dimension
  DeviceMemory<D, T> gathered_;  // columns of all ranks
  std::vector<Output> output_;
};

}  // namespace pdp::engine
