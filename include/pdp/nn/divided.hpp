#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/row_parallel.hpp>

namespace pdp::nn {

/// Whether the last layer of a model may be divided by its outputs, so that each rank has some classes. The loss must support that
/// (loss::ShardedLoss).
enum class Output { whole, may_be_sharded };

namespace detail {

// Not constexpr on purpose, as in block.hpp.
[[noreturn]] void a_model_has_no_such_part(Part part);
[[noreturn]] void a_model_has_nothing_to_divide();

}  // namespace detail

/// A rank's part of a model that is divided over a tensor-parallel group. If the model holds layers of tensor parallelism, these define the
/// division. Otherwise it is divided as in Shoeybi et al., "Megatron-LM", arXiv:1909.08053: of two Linear layers with only elementwise ones
/// between them, the first is divided by its outputs and the second by its inputs. So two layers need one sum in forward and one in
/// backward. Other layers stay whole. Parameters keep their names and initial values.
///
/// If there is only one part, it is the unchanged model. Throws ShapeError if a width cannot be divided evenly. Throws ConfigError if there
/// is nothing to divide, or `part` does not exist.
template <Block Model>
class Divided {
  static constexpr bool says_itself = any_is_placed<LeafTypes<Model>>;
  using Added = TypeList<ColumnParallel, RowParallel, Replicate, AllReduce>;

 public:
  using Leaves = std::conditional_t<says_itself, LeafTypes<Model>, typename detail::Union<LeafTypes<Model>, Added>::type>;

  constexpr Divided(const Model& model, Part part, Output output) : model_{model}, part_{part} {
    if (part.count < 1 || part.index < 0 || part.index >= part.count) detail::a_model_has_no_such_part(part);
    if constexpr (!says_itself)
      if (part.count > 1) choose(output);
    for_each_leaf({}, [this](const auto&, const Path&) { ++leaves_; });
    check_widths(flow(*this, Shape{}));
  }

  [[nodiscard]] constexpr Index leaves() const { return leaves_; }
  template <class Visit>
  constexpr void leaf(Index number, Visit&& visit) const {
    for_each_leaf({}, [&](const auto& layer, const Path&) {
      if (number-- == 0) visit(layer);
    });
  }
  template <class Visit>
  constexpr void for_each_leaf(const Path& path, Visit&& visit) const {
    std::size_t number = 0;
    nn::for_each_leaf(model_, path, [&]<class L>(const L& layer, const Path& at) {
      if constexpr (PlacedLayer<L>)
        visit(layer.divided(part_, at), at);
      else if constexpr (std::is_same_v<L, Linear>)
        visit_linear(layer, at, ways_.empty() ? Way::whole : ways_[number], visit);
      else
        visit(layer, at);
      ++number;
    });
  }

 private:
  enum class Way : unsigned char { whole, by_columns, by_rows };

  /// Decides for each layer how it is divided.
  constexpr void choose(Output output) {
    std::size_t waits = none;  // a Linear that is divided by its outputs if another follows
    Index classes = 0;         // outputs of the last Linear
    nn::for_each_leaf(model_, {}, [&]<class L>(const L& layer, const Path&) {
      ways_.push_back(Way::whole);
      if constexpr (std::is_same_v<L, Linear>) {
        classes = layer.out;
        if (waits == none) {
          waits = ways_.size() - 1;
        } else {
          ways_[std::exchange(waits, none)] = Way::by_columns;
          ways_.back() = Way::by_rows;
        }
      } else if constexpr (!is_elementwise<L> || is_view<L>) {  // a Flatten may join vectors; see outline()
        static_cast<void>(layer);
        waits = none;
      }
    });
    // The data define the number of classes. So if it cannot be divided evenly, the layer stays whole, which is no error.
    const bool has_even_classes = output == Output::may_be_sharded && classes % part_.count == 0;
    if (has_even_classes && waits == ways_.size() - 1) ways_.back() = Way::by_columns;
    for (const Way way : ways_)
      if (way != Way::whole) return;
    detail::a_model_has_nothing_to_divide();
  }
  template <class Visit>
  constexpr void visit_linear(const Linear& whole, const Path& at, Way way, Visit&& visit) const {
    if (way == Way::whole) return visit(whole, at);
    if constexpr (!says_itself) {
      if (way == Way::by_columns) {
        check_division(whole.out, part_.count, at, Linear::name, "outputs");
        visit(Replicate{}.divided(part_, at), at);
        visit(ColumnParallel{whole.in, whole.out, whole.bias, whole.initializer, whole.bias_initializer}.divided(part_, at), at);
      } else {
        check_division(whole.in, part_.count, at, Linear::name, "inputs");
        visit(RowParallel{whole.in, whole.out, whole.bias, whole.initializer, whole.bias_initializer}.divided(part_, at), at);
        visit(AllReduce{}.divided(part_, at), at);
      }
    }
  }

  static constexpr std::size_t none = as_size(-1);

  Model model_;
  Part part_;
  std::vector<Way> ways_;  // of the model's layers; empty if all are whole, or if they define the division themselves
  Index leaves_ = 0;
};

}  // namespace pdp::nn

#ifndef PDP_SEPARATE_CORE
#include <pdp/nn/source/divided.hpp>
#endif
