#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/nn/outline.hpp>

namespace pdp::plan {

/// The layers at which a model is cut into stages: the first layer of each stage but the first. Empty: split_by_cost() chooses. The
/// constructor throws ConfigError for more than 255 cuts.
class Cuts {
 public:
  static constexpr std::size_t most = 255;

  constexpr Cuts() = default;
  constexpr Cuts(std::initializer_list<int> layers) {
    if (layers.size() > most) throw ConfigError{text(layers.size(), " cuts were given; a model is cut at most ", most, " times")};
    for (const int layer : layers) layers_[count_++] = layer;
  }
  [[nodiscard]] constexpr bool empty() const { return count_ == 0; }
  [[nodiscard]] constexpr std::size_t size() const { return count_; }
  constexpr int operator[](std::size_t cut) const { return layers_[cut]; }

 private:
  std::array<int, most> layers_{};
  std::size_t count_ = 0;
};

/// Returns the relative cost of a layer per row, in multiplications. Forward and each half of backward cost the same, if they run. Values
/// that are read and written count as well, so that layers without parameters are not free.
constexpr Index cost(const nn::Outline::Layer& layer) {
  return std::max(layer.parameters, layer.products) + (layer.is_view ? 0 : layer.in + layer.out);
}

/// Cuts the layers into `stages` non-empty stages. Minimises the cost of the most expensive stage, then the sum of the squared costs. So
/// the costs of the other stages are as equal as possible. Returns the first layer of each stage, followed by the number of layers. Throws
/// ConfigError unless 1 <= stages <= layers.
constexpr std::vector<int> split_by_cost(const nn::Outline& model, int stages) {
  const int layers = model.size();
  if (stages < 1 || stages > layers)
    throw ConfigError{text("a model of ", layers, " layers cannot be cut into ", stages, " stages; each stage takes at least one layer")};
  std::vector<Index> before{0};
  for (int layer = 0; layer < layers; ++layer) {
    const auto& of = model.layers[as_size(layer)];
    before.push_back(before.back() + cost(of) * (!of.is_frozen ? 3 : model.passes_gradient(layer) ? 2 : 1));
  }
  const auto range = [&](int first, int last) { return before[as_size(last)] - before[as_size(first)]; };
  const auto at = [&](int stage, int layer) { return as_size(stage * (layers + 1) + layer); };
  constexpr double never = std::numeric_limits<double>::max();
  // least[s][l]: the least combined cost of s + 1 stages over the first l layers; `join` combines two costs. from[s][l]: the first layer of
  // the last of these stages.
  std::vector<int> from(at(stages, 0), 0);
  const auto minimize = [&](auto&& of_stage, auto&& join) {
    std::vector<double> least(from.size(), never);
    for (int layer = 1; layer <= layers; ++layer) least[at(0, layer)] = of_stage(range(0, layer));
    for (int stage = 1; stage < stages; ++stage) {
      for (int layer = stage + 1; layer <= layers; ++layer) {
        for (int cut = layer - 1; cut >= stage; --cut) {  // each iteration makes the last stage more expensive
          const double rest = least[at(stage - 1, cut)], last = of_stage(range(cut, layer));
          if (last == never || last > least[at(stage, layer)]) break;
          if (rest == never || join(rest, last) > least[at(stage, layer)]) continue;
          least[at(stage, layer)] = join(rest, last);
          from[at(stage, layer)] = cut;
        }
      }
    }
    return least[at(stages - 1, layers)];
  };
  const double dearest = minimize([](Index stage) { return as_double(stage); }, [](double a, double b) { return std::max(a, b); });
  minimize(
      [&](Index stage) {
        const auto each = as_double(stage);
        return each > dearest ? never : each * each;
      },
      [](double a, double b) { return a + b; });
  std::vector<int> firsts(as_size(stages) + 1, layers);
  for (int stage = stages - 1; stage >= 0; --stage) firsts[as_size(stage)] = stage == 0 ? 0 : from[at(stage, firsts[as_size(stage) + 1])];
  return firsts;
}

/// Returns the first layer of each stage, followed by the number of layers: as `cuts` says, or by cost if there are no cuts. Throws
/// ConfigError if the cuts do not make `stages` non-empty stages.
constexpr std::vector<int> stages_of(const nn::Outline& model, int stages, const Cuts& cuts) {
  if (cuts.empty()) return split_by_cost(model, stages);
  if (cuts.size() + 1 != as_size(stages))
    throw ConfigError{text(cuts.size(), " cuts make ", cuts.size() + 1, " stages, but there are ", stages)};
  std::vector<int> firsts{0};
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] <= firsts.back() || cuts[i] >= model.size())
      throw ConfigError{
          text("a cut before layer ", cuts[i], " leaves an empty stage; cuts must increase, from 1 to at most ", model.size() - 1)};
    firsts.push_back(cuts[i]);
  }
  firsts.push_back(model.size());
  return firsts;
}

}  // namespace pdp::plan
