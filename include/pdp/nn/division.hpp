#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <pdp/nn/channel_parallel.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/head_parallel_attention.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/nn/tied_output.hpp>
#include <pdp/nn/vocabulary_parallel_embedding.hpp>
#include <pdp/nn/vocabulary_parallel_output.hpp>

namespace pdp::nn {

/// Whether the last layer of a model may be divided by its outputs, so that each rank has some classes. The loss must support that
/// (loss::ShardedLoss).
enum class Output { whole, may_be_sharded };

template <Block Model, bool chooses>
class Divided;

namespace detail {

/// How a layer is divided over a tensor-parallel group.
enum class Way : unsigned char { whole, by_outputs, by_inputs, by_channels, by_heads, by_vocabulary };

/// The types of the layers that a layer of type L may become, if Divided chooses the division or not.
template <class L, bool chooses>
struct Forms {
  using type = TypeList<L>;
};
template <>
struct Forms<Linear, true> {
  using type = TypeList<Linear, Replicate, ColumnParallel, RowParallel, AllReduce>;
};
template <>
struct Forms<Conv2d, true> {
  using type = TypeList<Conv2d, Replicate, OutputParallelConv2d, InputParallelConv2d, AllReduce>;
};
template <>
struct Forms<BatchNorm, true> {
  using type = TypeList<BatchNorm, ChannelParallel<BatchNorm>>;
};
template <>
struct Forms<GroupNorm, true> {
  using type = TypeList<GroupNorm, ChannelParallel<GroupNorm>>;
};
template <>
struct Forms<MultiHeadAttention, true> {
  using type = TypeList<MultiHeadAttention, Replicate, HeadParallelAttention, AllReduce>;
};
template <>
struct Forms<Embedding, true> {
  using type = TypeList<Embedding, VocabularyParallelEmbedding, AllReduce>;
};
template <>
struct Forms<TiedOutput, true> {
  using type = TypeList<TiedOutput, Replicate, VocabularyParallelOutput>;
};

/// Whether a layer, or one inside it, may be divided.
template <class List, bool chooses>
constexpr bool any_divides = false;
template <class L, bool chooses>
constexpr bool divides = PlacedLayer<L> || (chooses && (std::is_same_v<L, Linear> || std::is_same_v<L, Conv2d> ||
                                                        std::is_same_v<L, MultiHeadAttention> || std::is_same_v<L, Embedding>));
template <class L, bool chooses>
requires requires { typename L::Inner; }
constexpr bool divides<L, chooses> = any_divides<typename L::Inner, chooses>;
template <class... L, bool chooses>
constexpr bool any_divides<TypeList<L...>, chooses> = (divides<L, chooses> || ...);

/// Divides the blocks inside a layer. `Forms` is that of a layer with the divided blocks.
template <class B, bool chooses>
requires divides<Residual<B>, chooses>
struct Forms<Residual<B>, chooses> {
  using Divides = Residual<Divided<B, chooses>>;
  using type = TypeList<Divides>;
};
template <class... B, bool chooses>
requires divides<Sum<B...>, chooses>
struct Forms<Sum<B...>, chooses> {
  using Divides = Sum<Divided<B, chooses>...>;
  using type = TypeList<Divides>;
};
template <class... B, bool chooses>
requires divides<Concat<B...>, chooses>
struct Forms<Concat<B...>, chooses> {
  using Divides = Concat<Divided<B, chooses>...>;
  using type = TypeList<Divides>;
};
template <class List, bool chooses>
struct FormsOfAll;
template <class... L, bool chooses>
struct FormsOfAll<TypeList<L...>, chooses> {
  using type = typename Union<TypeList<>, typename Forms<L, chooses>::type...>::type;
};

/// Whether a TypeList holds a PlacedLayer, also inside a layer.
template <class List>
constexpr bool any_is_placed_inside = any_divides<List, false>;

struct FindDivided {
  bool found = false;

  template <class L>
  constexpr void operator()(const L& layer, const Path&) {
    found = found || part_of(layer).count > 1;
  }
};

/// Decides for each layer of a model, which it visits in order, how the layer is divided: see Divided.
class DivisionChoice {
 public:
  constexpr explicit DivisionChoice(int parts) : parts_{parts} {}

  template <class L>
  constexpr void operator()(const L& layer, const Path&) {
    ways_.push_back(Way::whole);
    if constexpr (std::is_same_v<L, Linear>) {
      outputs_ = layer.out;
      pair(Kind::linear);
    } else if constexpr (std::is_same_v<L, Conv2d>) {
      const bool is_second = waits_ == Kind::convolution;
      if (layer.options().groups > 1 || (is_second ? layer.in() : layer.out()) % parts_ != 0)
        waits_ = Kind::none;
      else
        pair(Kind::convolution);
    } else if constexpr (std::is_same_v<L, BatchNorm>) {
      if (waits_ == Kind::convolution)
        normalisations_.push_back(ways_.size() - 1);
      else
        waits_ = Kind::none;
    } else if constexpr (std::is_same_v<L, GroupNorm>) {
      if (waits_ == Kind::convolution && layer.groups() % parts_ == 0)
        normalisations_.push_back(ways_.size() - 1);
      else
        waits_ = Kind::none;
    } else if constexpr (is_channelwise<L>) {
      if (waits_ != Kind::convolution) waits_ = Kind::none;
    } else if constexpr (!is_elementwise<L> || is_view<L>) {  // a Flatten may join vectors; see outline()
      waits_ = Kind::none;
      if constexpr (std::is_same_v<L, MultiHeadAttention>) ways_.back() = Way::by_heads;
      if constexpr (std::is_same_v<L, Embedding> || std::is_same_v<L, TiedOutput>)
        if (layer.vocabulary % parts_ == 0) ways_.back() = Way::by_vocabulary;
      if constexpr (std::is_same_v<L, TiedOutput>) tied_ = ways_.size() - 1;
    }
  }
  /// Returns the ways, in the order of the layers.
  [[nodiscard]] constexpr std::vector<Way> finish(Output output) {
    // The data define the number of classes. So if it cannot be divided evenly, the layer stays whole, which is no error.
    const bool has_even_classes = output == Output::may_be_sharded && outputs_ % parts_ == 0;
    if (has_even_classes && waits_ == Kind::linear && first_ == ways_.size() - 1) ways_.back() = Way::by_outputs;
    if (tied_ > 0) {
      const bool may_divide = output == Output::may_be_sharded && tied_ == ways_.size() - 1;
      if (!may_divide || ways_.front() != ways_[tied_]) ways_[tied_] = ways_.front() = Way::whole;
    }
    return ways_;
  }

 private:
  enum class Kind : unsigned char { none, linear, convolution };

  constexpr void pair(Kind kind) {
    if (waits_ != kind) {
      waits_ = kind;
      first_ = ways_.size() - 1;
      normalisations_.clear();
      return;
    }
    ways_[first_] = Way::by_outputs;
    for (const std::size_t number : normalisations_) ways_[number] = Way::by_channels;
    ways_.back() = Way::by_inputs;
    waits_ = Kind::none;
  }

  int parts_;
  std::vector<Way> ways_;
  Kind waits_ = Kind::none;                  // a layer of this kind is divided by its outputs if another follows
  std::size_t first_ = 0;                    // its number
  std::vector<std::size_t> normalisations_;  // behind it
  Index outputs_ = 0;                        // of the last Linear
  std::size_t tied_ = 0;                     // the number of a TiedOutput, which is divided if the Embedding is; 0: none
};

}  // namespace detail

}  // namespace pdp::nn
