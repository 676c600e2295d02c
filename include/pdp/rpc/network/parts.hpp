#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/plan/cuts.hpp>
#include <pdp/rpc/network/device_thread.hpp>
#include <pdp/rpc/network/part.hpp>
#include <pdp/rpc/owned_matrix.hpp>

namespace pdp::rpc {

/// The layers of a network, divided over devices of one host by their cost. If there are several devices and they compute in host memory,
/// each is a thread.
template <nn::Block Model, class D>
class NetworkParts {
 public:
  using Part = NetworkPart<Model, D>;
  /// The tensors of a forward call, and the gradients of the parameters, of each part.
  using Tensors = std::vector<std::unique_ptr<CallTensors<D>>>;
  using Gradients = std::vector<typename Part::Gradients>;

  NetworkParts(const Model& model, const Shape& input, const nn::Path& at, std::uint64_t seed, const std::vector<D>& devices) {
    const std::vector<int> firsts = plan::split_by_cost(nn::outline(model, input), as_int(devices.size()));
    for (std::size_t d = 0; d < devices.size(); ++d)
      parts_.push_back(std::make_unique<Part>(model, input, at, firsts[d], firsts[d + 1], seed, devices[d]));
    if (D::uses_host_memory && devices.size() > 1)
      for (std::size_t d = 0; d < devices.size(); ++d) threads_.push_back(std::make_unique<DeviceThread>());
  }

  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  [[nodiscard]] Part& operator[](std::size_t part) { return *parts_[part]; }
  [[nodiscard]] Part& front() { return *parts_.front(); }
  [[nodiscard]] Part& back() { return *parts_.back(); }
  [[nodiscard]] auto begin() const { return parts_.begin(); }
  [[nodiscard]] auto end() const { return parts_.end(); }

  /// Runs the function on the thread of a part, or here if parts have no threads.
  void on_thread(std::size_t part, const std::function<void()>& function) {
    if (threads_.empty())
      function();
    else
      threads_[part]->run(function);
  }

  /// Computes all layers. `x`: the input in host memory, which must remain until the backward call. `is_training`: whether there is one.
  [[nodiscard]] Tensors forward(Matrix<const float> x, bool is_training) {
    Tensors tensors;
    for (std::size_t p = 0; p < size(); ++p) {
      tensors.push_back(parts_[p]->take(x.rows, is_training));
      on_thread(p, [&] { parts_[p]->forward(*tensors[p], x); });
      if (p + 1 == size()) break;
      const Matrix<const float> y = parts_[p]->output(*tensors[p]);
      if constexpr (D::uses_host_memory) {
        x = y;
      } else {
        const auto& read = on_host(parts_[p]->device(), y.values());
        between_.assign(read.begin(), read.end());
        x = {between_.data(), y.rows, y.cols};
      }
    }
    return tensors;
  }
  /// Returns a copy of the output.
  [[nodiscard]] OwnedMatrix output(const Tensors& tensors) const {
    const Matrix<const float> y = parts_.back()->output(*tensors.back());
    const auto& read = on_host(parts_.back()->device(), y.values());
    return {y.rows, y.cols, {read.begin(), read.end()}};
  }
  /// Computes the gradients of the parameters from that of the output, and adds them to `sum` if `accumulate` is true. Returns the gradient
  /// of the input, or no rows if it is not needed.
  [[nodiscard]] OwnedMatrix backward(const Tensors& tensors, Gradients& sum, bool accumulate, bool needs_input) {
    OwnedMatrix to_input{0, parts_.front()->in_width(), {}};
    for (std::size_t p = size(); p-- > 0;) {
      on_thread(p, [&] {
        Part& part = *parts_[p];
        const Matrix<const float> gradient = part.backward(*tensors[p], sum[p], accumulate, p > 0 || needs_input);
        if (p == 0 && !needs_input) return;
        const auto& read = on_host(part.device(), gradient.values());
        if (p == 0)
          to_input = OwnedMatrix{gradient.rows, gradient.cols, {read.begin(), read.end()}};
        else
          upload(parts_[p - 1]->device(), std::span<const float>{read}, parts_[p - 1]->output_gradient(*tensors[p - 1]).data);
      });
    }
    return to_input;
  }
  void give_back(Tensors& tensors) {
    for (std::size_t p = 0; p < tensors.size(); ++p) parts_[p]->give_back(std::move(tensors[p]));
    tensors.clear();
  }

  [[nodiscard]] Gradients gradients() {
    Gradients all;
    for (const auto& part : parts_) all.push_back(part->gradients());
    return all;
  }
  /// Returns the sum of the squares of values on the device of a part.
  [[nodiscard]] double square(std::size_t part, std::span<const float> values) {
    double square = 0;
    on_thread(part, [&] {
      const D& device = parts_[part]->device();
      auto sum = allocate<double>(device, 1);
      sum_of_squares(device, Matrix<const float>{values.data(), 1, as_index(values.size())}, sum.data());
      square = on_host(device, std::span<const double>{sum.span()}).front();
    });
    return square;
  }

 private:
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::unique_ptr<DeviceThread>> threads_;
  std::vector<float> between_;  // values on their way from one device to the next
};

}  // namespace pdp::rpc
