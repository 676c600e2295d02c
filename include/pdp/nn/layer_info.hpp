#pragma once

#include <string>
#include <vector>

#include <pdp/core/shape.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

/// A layer in words, as a rank holds it. A tied layer has no parameters, since they are those of the first layer.
struct LayerInfo {
  std::string path{};    // its position in the model: "3", or "1.0.2" in nested containers; empty if it is the whole model
  std::string kind{};    // "Linear"
  Index parameters = 0;  // elements that the rank holds, without padding; if the layer is divided, those of the rank's part
  Index whole = 0;       // elements of the undivided layer
  Index buffers = 0;     // elements among `parameters` that belong to buffers
  Index frozen = 0;      // elements among `parameters` that are inside a Frozen, buffers included

  /// Returns "3 Linear".
  [[nodiscard]] std::string text() const { return path.empty() ? kind : path + ' ' + kind; }
};

namespace detail {

struct AppendInfo {
  /// Not a lambda, so that the parameters() of a layer inside several blocks is compiled once.
  struct Count {
    LayerInfo& info;

    void operator()(const Parameter& parameter) const {
      info.parameters += parameter.elements();
      info.whole += parameter.file_elements();
      if (parameter.is_buffer) info.buffers += parameter.elements();
      if (parameter.layer.is_frozen()) info.frozen += parameter.elements();
    }
  };
  std::vector<LayerInfo>& all;

  template <class L>
  void operator()(const L& layer, const Path& path) const {
    const Count visit{all.emplace_back(LayerInfo{path.str(), L::name})};
    if constexpr (!is_tied<L>) layer.parameters(path, 0, visit);
  }
};

}  // namespace detail

/// Returns the layers of a model in order.
template <Block Model>
[[nodiscard]] std::vector<LayerInfo> layer_infos(const Model& model) {
  std::vector<LayerInfo> all;
  for_each_leaf(model, {}, detail::AppendInfo{all});
  return all;
}

}  // namespace pdp::nn
