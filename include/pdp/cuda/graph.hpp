#pragma once

#include <algorithm>
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
  /// Whether there is a graph of a key.
  [[nodiscard]] bool is_ready(std::span<const Index> key) {
    const std::optional<Graph>* const graph = find(key);
    return graph != nullptr && graph->has_value();
  }
  /// The place of a key's graph, empty at first; null where there is none of that key.
  [[nodiscard]] std::optional<Graph>* find(std::span<const Index> key) {
    const auto found = graphs_.find(key);
    return found == graphs_.end() ? nullptr : &found->second;
  }
  /// Makes a place for a key, unless there are as many as there may be: each graph holds memory of the device, and batches of ever new
  /// sizes are not to fill it.
  void add(std::span<const Index> key) {
    if (graphs_.size() < most) graphs_.try_emplace({key.begin(), key.end()});
  }

 private:
  static constexpr std::size_t most = 64;
  struct Before {
    using is_transparent = void;
    bool operator()(std::span<const Index> left, std::span<const Index> right) const {
      return std::ranges::lexicographical_compare(left, right);
    }
  };
  std::map<std::vector<Index>, std::optional<Graph>, Before> graphs_;
};

/// Carries out the operations that body() gives to the device. They are the same whenever the key is: so body() is called as it is the
/// first time, when CUDA loads the kernels that it has not loaded yet, the second time for a record, and then no more.
template <class Body>
void replay(const Device& device, Device::Recordings& recordings, std::span<const Index> key, Body&& body) {
  std::optional<Graph>* const graph = device.records() ? recordings.find(key) : nullptr;
  if (graph == nullptr) {
    body();
    if (device.records()) recordings.add(key);  // now that nothing is left that is done the first time only
    return;
  }
  if (!*graph) {
    Recording recording{device};
    body();
    *graph = recording.finish();
  }
  (*graph)->launch(device);
}

}  // namespace pdp::cuda
