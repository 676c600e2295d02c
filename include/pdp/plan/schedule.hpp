#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <pdp/core/copyable.hpp>
#include <pdp/core/error.hpp>

namespace pdp::plan {

/// One action of a rank: a pass of a micro-batch through one of the rank's stages.
struct Action {
  enum class Kind : std::uint8_t {
    forward,
    backward,        // both halves, layer by layer
    backward_input,  // the part that the previous stage waits for
    backward_weight
  };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int chunk = 0;  // index among the rank's stages

  friend constexpr bool operator==(const Action&, const Action&) = default;
};

/// The position of a rank in a pipeline, and the size of both the pipeline and the step. A schedule lists the actions of this rank.
struct PipelinePlace {
  int rank = 0;
  int ranks = 1;
  int micro_batches = 1;
};

/// The order in which the ranks of a pipeline work. Each rank holds `chunks` of the `ranks * chunks` stages: those with the numbers rank,
/// rank + ranks, and so on. actions(place) returns a rank's work in a step: each micro-batch once forward and once backward in each of its
/// stages.
template <class S>
concept Schedule = Copyable<S> && requires(const S& schedule, PipelinePlace at) {
  { schedule.chunks } -> std::convertible_to<int>;
  { schedule.actions(at) } -> std::same_as<std::vector<Action>>;
};

/// Returns the same work in another order: a rank computes the gradients of a stage's parameters for `micro_batches` micro-batches in a
/// row, as soon as the last of these is ready. The last such run of a stage may be shorter.
constexpr std::vector<Action> join_weights(const std::vector<Action>& actions, int micro_batches) {
  std::vector<Action> list, waiting;  // waiting: delayed actions of all stages
  const auto is_of = [](int chunk) { return [chunk](const Action& each) { return each.chunk == chunk; }; };
  const auto left = [&](std::size_t at, int chunk) {
    return std::any_of(actions.begin() + static_cast<std::ptrdiff_t>(at) + 1, actions.end(), [chunk](const Action& each) {
      return each.chunk == chunk && (each.kind == Action::Kind::backward || each.kind == Action::Kind::backward_weight);
    });
  };
  for (std::size_t at = 0; at < actions.size(); ++at) {
    Action action = actions[at];
    const int chunk = action.chunk;
    const bool is_weight = action.kind == Action::Kind::backward || action.kind == Action::Kind::backward_weight;
    if (action.kind == Action::Kind::backward) action.kind = Action::Kind::backward_input;
    if (action.kind != Action::Kind::backward_weight) list.push_back(action);
    if (!is_weight) continue;
    waiting.push_back({Action::Kind::backward_weight, action.micro_batch, chunk});
    if (std::count_if(waiting.begin(), waiting.end(), is_of(chunk)) < micro_batches && left(at, chunk)) continue;
    const auto begin = static_cast<std::ptrdiff_t>(list.size());
    std::copy_if(waiting.begin(), waiting.end(), std::back_inserter(list), is_of(chunk));
    std::sort(list.begin() + begin, list.end(), [](const Action& a, const Action& b) { return a.micro_batch < b.micro_batch; });
    std::erase_if(waiting, is_of(chunk));
  }
  return list;
}

/// All forward passes, then all backward passes: a rank holds the activations of all micro-batches at once. Huang et al., "GPipe: efficient
/// training of giant neural networks using pipeline parallelism", NeurIPS 2019.
struct GPipe {
  static constexpr int chunks = 1;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    std::vector<Action> list;
    for (int m = 0; m < at.micro_batches; ++m) list.push_back({Action::Kind::forward, m});
    for (int m = 0; m < at.micro_batches; ++m) list.push_back({Action::Kind::backward, m});
    return list;
  }
};

/// Every rank goes backward as early as possible. It holds the activations of at most as many micro-batches as there are stages from its
/// own to the last. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019; with a flush after each
/// step, as in "Memory-efficient pipeline-parallel DNN training", ICML 2021.
struct OneForwardOneBackward {
  static constexpr int chunks = 1;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    const int ahead = std::min(at.micro_batches, at.ranks - at.rank - 1);
    std::vector<Action> list;
    for (int m = 0; m < ahead; ++m) list.push_back({Action::Kind::forward, m});
    for (int m = 0; m < at.micro_batches; ++m) {
      if (m + ahead < at.micro_batches) list.push_back({Action::Kind::forward, m + ahead});
      list.push_back({Action::Kind::backward, m});
    }
    return list;
  }
};

/// Several stages on each rank, so that the pipeline fills and drains in shorter steps, at the cost of more messages. Micro-batches pass
/// through the stages of a rank in groups of `ranks` micro-batches. The last group may be smaller. Narayanan et al., "Efficient large-scale
/// language model training on GPU clusters using Megatron-LM", SC 2021.
struct Interleaved {
  int chunks = 2;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    const int groups = (at.micro_batches + at.ranks - 1) / at.ranks, of_group = at.ranks * chunks, all = groups * of_group;
    const int ahead = std::min(all, 2 * (at.ranks - at.rank - 1) + (chunks - 1) * at.ranks);
    std::vector<Action> list;
    const auto turn = [&](Action::Kind kind, int number) {
      const int m = number / of_group * at.ranks + number % at.ranks, chunk = number % of_group / at.ranks;
      if (m < at.micro_batches) list.push_back({kind, m, kind == Action::Kind::forward ? chunk : chunks - 1 - chunk});
    };
    for (int k = 0; k < ahead; ++k) turn(Action::Kind::forward, k);
    for (int k = 0; k < all; ++k) {
      if (k + ahead < all) turn(Action::Kind::forward, k + ahead);
      turn(Action::Kind::backward, k);
    }
    return list;
  }
};

/// OneForwardOneBackward with backward in two halves. The gradients of the parameters, which no other rank waits for, are computed later,
/// when the rank would be idle. Every rank holds the activations of as many micro-batches as the first rank. Qi et al., "Zero bubble
/// pipeline parallelism", ICLR 2024: schedule ZB-H1.
struct ZeroBubble {
  static constexpr int chunks = 1;

  [[nodiscard]] constexpr std::vector<Action> actions(PipelinePlace at) const {
    const int ahead = std::min(at.micro_batches, at.ranks - at.rank - 1);
    std::vector<Action> list;
    int backward_weighted = 0;
    for (int m = 0; m < ahead; ++m) list.push_back({Action::Kind::forward, m});
    for (int m = 0; m < at.micro_batches; ++m) {
      const bool steady = m + ahead < at.micro_batches;
      if (steady) list.push_back({Action::Kind::forward, m + ahead});
      list.push_back({Action::Kind::backward_input, m});
      if (!steady || m >= at.rank) list.push_back({Action::Kind::backward_weight, backward_weighted++});
    }
    while (backward_weighted < at.micro_batches) list.push_back({Action::Kind::backward_weight, backward_weighted++});
    return list;
  }
};

static_assert(Schedule<GPipe> && Schedule<OneForwardOneBackward> && Schedule<Interleaved> && Schedule<ZeroBubble>);

}  // namespace pdp::plan
