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

// Declared by the CUDA runtime: the type that cudaGraphExec_t points to.
struct CUgraphExec_st;

namespace pdp::cuda {

/// Recorded operations of a device, which run again in one launch: a CUDA graph.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept : graph_{std::exchange(other.graph_, nullptr)} {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph();

  /// Runs the operations in the order of the device's stream. Does not wait for them.
  void launch(const Device& device) const;

 private:
  friend class Recording;
  CUgraphExec_st* graph_ = nullptr;
};

/// Records the operations given to the device during its lifetime, instead of running them.
class Recording {
 public:
  explicit Recording(const Device& device);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Does not throw. Without finish(), discards the recording.
  ~Recording();

  /// Ends the recording and returns its graph.
  [[nodiscard]] Graph finish();

 private:
  const Device& device_;
  bool finished_ = false;
};

/// The recorded graphs of a device, by key; see replay().
class Device::Recordings {
 public:
  /// Returns whether there is a graph for a key.
  [[nodiscard]] bool is_ready(std::span<const Index> key) {
    const std::optional<Graph>* const graph = find(key);
    return graph != nullptr && graph->has_value();
  }
  /// Returns the entry for a key, or null if there is none. An entry is empty until its graph is recorded.
  [[nodiscard]] std::optional<Graph>* find(std::span<const Index> key) {
    const auto found = graphs_.find(key);
    return found == graphs_.end() ? nullptr : &found->second;
  }
  /// Adds an entry for a key, unless there are 64 already. Each graph takes memory of the device, and batches of ever new sizes must not
  /// fill that memory.
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

/// Runs the operations that body() gives to the device. They must be the same whenever the key is the same. The first call for a key runs
/// body() directly, as CUDA then loads kernels. The second call records it as a graph, and later calls only launch the graph.
template <class Body>
void replay(const Device& device, Device::Recordings& recordings, std::span<const Index> key, Body&& body) {
  std::optional<Graph>* const graph = device.records() ? recordings.find(key) : nullptr;
  if (graph == nullptr) {
    body();
    if (device.records()) recordings.add(key);  // only now, as a first run does work that must not be recorded
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
