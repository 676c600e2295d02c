#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/shape.hpp>
#include <pdp/cuda/handle.hpp>

// The library's own: what cudaGraphExec_t points to.
struct CUgraphExec_st;

namespace pdp::cuda {

/// Operations that a device was given once, and carries out again in one launch.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept : graph_{std::exchange(other.graph_, nullptr)} {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph();

  void launch(const Device& device) const;

 private:
  friend class Recording;
  CUgraphExec_st* graph_ = nullptr;
};

/// While it lives, what the device is given is written down and not carried out.
class Recording {
 public:
  explicit Recording(const Device& device);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Throws nothing: what was written down until an error is forgotten.
  ~Recording();

  /// Ends it.
  [[nodiscard]] Graph finish();

 private:
  const Device& device_;
  bool finished_ = false;
};

class Device::Recordings {
 public:
  /// The place of a key's graph, empty at first; null where there are as many as there may be: each holds memory of the device, and batches
  /// of ever new sizes are not to fill it.
  [[nodiscard]] std::optional<Graph>* find(std::span<const Index> key, bool& is_new) {
    const std::vector<Index> own{key.begin(), key.end()};
    is_new = false;
    if (const auto found = graphs_.find(own); found != graphs_.end()) return &found->second;
    if (graphs_.size() == most) return nullptr;
    is_new = true;
    return &graphs_[own];
  }

 private:
  static constexpr std::size_t most = 64;
  std::map<std::vector<Index>, std::optional<Graph>> graphs_;
};

/// Carries out the operations that body() gives to the device. They are the same whenever the key is: so body() is called as it is the
/// first time, when CUDA loads the kernels that it has not loaded yet, the second time for a record, and then no more.
template <class Body>
void replay(const Device& device, Device::Recordings& recordings, std::span<const Index> key, Body&& body) {
  bool is_new = false;
  std::optional<Graph>* const graph = device.records() ? recordings.find(key, is_new) : nullptr;
  if (graph == nullptr || is_new) return body();
  if (!*graph) {
    Recording recording{device};
    body();
    *graph = recording.finish();
  }
  (*graph)->launch(device);
}

}  // namespace pdp::cuda
