#pragma once

#include <cstddef>
#include <map>
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
  /// The graph of a key; null where there is none yet.
  [[nodiscard]] const Graph* find(std::span<const Index> key) const {
    const auto found = graphs_.find({key.begin(), key.end()});
    return found == graphs_.end() ? nullptr : &found->second;
  }
  /// Whether more are kept: each holds memory of the device, and batches of ever new sizes are not to fill it.
  [[nodiscard]] bool has_room() const { return graphs_.size() < most; }
  const Graph& keep(std::span<const Index> key, Graph graph) {
    return graphs_.emplace(std::vector<Index>{key.begin(), key.end()}, std::move(graph)).first->second;
  }

 private:
  static constexpr std::size_t most = 64;
  std::map<std::vector<Index>, Graph> graphs_;
};

/// Carries out the operations that body() gives to the device. They are the same whenever the key is, and so body() may be called only once
/// for each key.
template <class Body>
void replay(const Device& device, Device::Recordings& recordings, std::span<const Index> key, Body&& body) {
  const Graph* graph = recordings.find(key);
  if (graph == nullptr) {
    if (!device.records() || !recordings.has_room()) return body();
    Recording recording{device};
    body();
    graph = &recordings.keep(key, recording.finish());
  }
  graph->launch(device);
}

}  // namespace pdp::cuda
