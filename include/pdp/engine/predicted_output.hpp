#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>

namespace pdp::engine {

/// The model's output for the rows of a prediction, in host memory. It is valid until the next call.
template <class Input, class T, class D>
class PredictedOutput {
 public:
  /// `ranks`: size of the group that the columns of the output may be divided over.
  explicit PredictedOutput(int ranks) : ranks_{ranks} {}

  /// Returns the output if this rank has all of its columns.
  [[nodiscard]] Matrix<const Input> whole(const D& device, Matrix<const T> own) {
    if constexpr (D::uses_host_memory) {
      return own;
    } else {
      const auto& read = on_host(device, own.values());
      output_.assign(read.begin(), read.end());
      return {output_.data(), own.rows, own.cols};
    }
  }

  /// Returns the output if each rank of a group has some of its columns. gather(own, all) collects the columns of all ranks.
  template <class Gather>
  [[nodiscard]] Matrix<const Input> join(const D& device, Matrix<const T> own, const Gather& gather) {
    const Index size = own.size(), count = ranks_;
    if (gathered_.size() < size * count) gathered_ = allocate<T>(device, size * count);
    const std::span<T> all = gathered_.span().first(as_size(size * count));
    gather(own.values(), all);
    const auto& read = on_host(device, std::span<const T>{all});
    output_.resize(all.size());
    const Matrix<Input> whole{output_.data(), own.rows, own.cols * count};
    for (Index r = 0; r < own.rows; ++r)
      for (Index rank = 0; rank < count; ++rank)
        std::copy_n(read.data() + rank * size + r * own.cols, own.cols, whole.row(r) + rank * own.cols);
    return whole;
  }

 private:
  int ranks_;
  DeviceMemory<D, T> gathered_;  // columns of all ranks
  std::vector<Input> output_;
};

}  // namespace pdp::engine
