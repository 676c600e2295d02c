#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/nn/block.hpp>

namespace pdp::nn {

namespace detail {

/// The place of a layer: the number of its type, and its number among the layers of this type.
struct LayerPlace {
  std::size_t type;
  std::size_t index;
};

}  // namespace detail

/// Layers of the types in a TypeList, by number. They are stored by type, so code that visits them is compiled once for each type, not for
/// each position.
template <class Types>
class LayersOf {
 public:
  template <class L>
  constexpr void append(const L& layer) {
    auto& alike = std::get<std::vector<L>>(by_type_);
    places_.push_back({index_of<L>(), alike.size()});
    alike.push_back(layer);
  }

  [[nodiscard]] constexpr int size() const { return as_int(places_.size()); }

  /// Calls f(layer, arguments...) with layer `number`, as its own type.
  template <class F, class... Arguments>
  constexpr void visit(int number, F&& f, const Arguments&... arguments) const {
    const detail::LayerPlace place = places_[as_size(number)];
    [&]<std::size_t... Numbers>(std::index_sequence<Numbers...>) {
      static_cast<void>(((place.type == Numbers && (f(std::get<Numbers>(by_type_)[place.index], arguments...), true)) || ...));
    }
    (std::make_index_sequence<Types::size>{});
  }

 private:
  template <class List>
  struct Vectors;
  template <class... L>
  struct Vectors<TypeList<L...>> {
    using type = std::tuple<std::vector<L>...>;
  };
  template <class L, class... All>
  static constexpr std::size_t index_in(TypeList<All...>) {
    std::size_t index = 0;
    static_cast<void>(((std::is_same_v<L, All> || (static_cast<void>(++index), false)) || ...));
    return index;
  }
  template <class L>
  static constexpr std::size_t index_of() {
    return index_in<L>(Types{});
  }

  typename Vectors<Types>::type by_type_;
  std::vector<detail::LayerPlace> places_;
};

/// The leaves of a model by number.
template <Block Model>
class Layers : public LayersOf<LeafTypes<Model>> {
 public:
  constexpr explicit Layers(const Model& model) {
    for_each_leaf(model, {}, [this](const auto& layer, const Path&) { this->append(layer); });
  }
};

}  // namespace pdp::nn
