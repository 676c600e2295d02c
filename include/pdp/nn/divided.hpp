#pragma once

#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/division.hpp>
#include <pdp/nn/layers.hpp>

namespace pdp::nn {

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_model_has_no_such_part(Part part);
[[noreturn]] void a_model_has_nothing_to_divide();

template <class Model, bool chooses>
constexpr bool names_children<Divided<Model, chooses>> = names_children<Model>;

}  // namespace detail

/// A rank's part of a model that is divided over a tensor-parallel group. If the model holds layers of tensor parallelism, these define the
/// division. Otherwise it is divided as in Shoeybi et al., "Megatron-LM", arXiv:1909.08053:
///
/// - Of two Linear layers with only elementwise ones between them, the first is divided by its outputs and the second by its inputs. So two
///   layers need one sum in forward and one in backward.
/// - The same holds for two Conv2d of one group, also with pooling, BatchNorm or GroupNorm between them, which then have some channels on
///   each rank. They stay whole if their channels cannot be divided evenly.
/// - A MultiHeadAttention is divided by heads.
/// - An Embedding, and the last Linear if the loss allows that, are divided by the vocabulary, if it can be divided evenly. With a
///   TiedOutput, both are divided or neither.
///
/// Blocks inside Residual, Sum and Concat are divided in the same way. Other layers stay whole. Parameters keep their names and initial
/// values.
///
/// If there is only one part, its layers are those of the model. Throws ShapeError if a width or the heads of attention cannot be divided
/// evenly. Throws ConfigError if there is nothing to divide, or `part` does not exist.
template <Block Model, bool chooses = !detail::any_is_placed_inside<LeafTypes<Model>>>
class Divided {
 public:
  using Leaves = typename detail::FormsOfAll<LeafTypes<Model>, chooses>::type;

  constexpr Divided(const Model& model, Part part, Output output) {
    if (part.count < 1 || part.index < 0 || part.index >= part.count) detail::a_model_has_no_such_part(part);
    divide(model, part, output, {});
    if (chooses && part.count > 1 && !divides()) detail::a_model_has_nothing_to_divide();
    check_widths(flow(*this, Shape{}));
  }
  /// A block inside a layer. `at`: the path of the block, for messages.
  constexpr Divided(const Model& block, Part part, const Path& at) { divide(block, part, Output::whole, at); }

  [[nodiscard]] constexpr Index leaves() const { return layers_.size(); }
  template <class Visit>
  constexpr void leaf(Index number, Visit&& visit) const {
    if (number >= 0 && number < leaves()) layers_.visit(as_int(number), visit);
  }
  template <class Visit>
  constexpr void for_each_leaf(const Path& path, Visit&& visit) const {
    for (int number = 0; number < layers_.size(); ++number) layers_.visit(number, visit, path.joined(paths_[as_size(number)]));
  }

 private:
  using Way = detail::Way;

  constexpr void divide(const Model& model, Part part, Output output, const Path& base) {
    std::vector<Way> ways;
    if constexpr (chooses) {
      detail::DivisionChoice choice{part.count};
      nn::for_each_leaf(model, {}, choice);
      if (part.count > 1) ways = choice.finish(output);
    }
    std::size_t number = 0;
    nn::for_each_leaf(model, {}, [&](const auto& layer, const Path& path) {
      add_part(layer, ways.empty() ? Way::whole : ways[number++], part, path, base.joined(path));
    });
  }
  /// Adds a rank's part of a layer, with the exchanges around it. `path`: inside the model. `at`: the whole path, for messages.
  template <class L>
  constexpr void add_part(const L& layer, Way way, Part part, const Path& path, const Path& at) {
    const auto add = [&](const auto& own) {
      layers_.append(own);
      paths_.push_back(path);
    };
    const auto add_placed = [&](const auto& whole) { add(whole.divided(part, at)); };
    if constexpr (PlacedLayer<L>) {
      add_placed(layer);
    } else if constexpr (requires { typename detail::Forms<L, chooses>::Divides; }) {
      add(inside(layer, part, at));
    } else if constexpr (std::is_same_v<typename detail::Forms<L, chooses>::type, TypeList<L>>) {
      add(layer);
    } else {
      if (way == Way::whole) return add(layer);
      if constexpr (std::is_same_v<L, Linear>) {
        if (way == Way::by_outputs) {
          check_division(layer.out, part.count, at, Linear::name, "outputs");
          add_placed(Replicate{});
          add_placed(ColumnParallel{layer.in, layer.out, layer.bias, layer.initializer, layer.bias_initializer});
        } else {
          check_division(layer.in, part.count, at, Linear::name, "inputs");
          add_placed(RowParallel{layer.in, layer.out, layer.bias, layer.initializer, layer.bias_initializer});
          add_placed(AllReduce{});
        }
      } else if constexpr (std::is_same_v<L, Conv2d>) {
        if (way == Way::by_outputs) {
          add_placed(Replicate{});
          add_placed(OutputParallelConv2d{layer});
        } else {
          add_placed(InputParallelConv2d{layer});
          add_placed(AllReduce{});
        }
      } else if constexpr (std::is_same_v<L, BatchNorm> || std::is_same_v<L, GroupNorm>) {
        add_placed(ChannelParallel<L>{layer});
      } else if constexpr (std::is_same_v<L, MultiHeadAttention>) {
        check_division(layer.options().key_heads, part.count, at, MultiHeadAttention::name, "heads of keys");
        add_placed(Replicate{});
        add_placed(HeadParallelAttention{layer});
        add_placed(AllReduce{});
      } else if constexpr (std::is_same_v<L, Embedding>) {
        add_placed(VocabularyParallelEmbedding{layer});
        add_placed(AllReduce{});
      } else if constexpr (std::is_same_v<L, TiedOutput>) {
        add_placed(Replicate{});
        add_placed(VocabularyParallelOutput{layer});
      }
    }
  }
  template <class B>
  static constexpr auto inside(const Residual<B>& layer, Part part, const Path& at) {
    return Residual{Divided<B, chooses>{layer.block(), part, detail::names_children<B> ? at : at.child(0)}};
  }
  template <class... B>
  static constexpr auto inside(const Sum<B...>& layer, Part part, const Path& at) {
    Index number = 0;
    return layer.with_blocks([&]<class Inner>(const Inner& block) { return Divided<Inner, chooses>{block, part, at.child(number++)}; });
  }
  template <class... B>
  static constexpr auto inside(const Concat<B...>& layer, Part part, const Path& at) {
    Index number = 0;
    return layer.with_blocks([&]<class Inner>(const Inner& block) { return Divided<Inner, chooses>{block, part, at.child(number++)}; });
  }
  [[nodiscard]] constexpr bool divides() const {
    detail::FindDivided divided;
    for_each_leaf({}, divided);
    return divided.found;
  }

  LayersOf<Leaves> layers_;
  std::vector<Path> paths_;
};
template <Block Model>
Divided(const Model&, Part, Output) -> Divided<Model>;

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/divided.hpp>
#endif
