#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The ranks from which the parameters of a model are collected: each element comes from the first rank that keeps it.
class Contributions {
 public:
  /// A whole unit of a rank, or the rank's slice of it.
  struct Part {
    int rank = 0, unit = 0;
    int first = 0, last = 0;  // layers
    int part = 0;             // index of the rank's part of divided layers
    bool sliced = false;
    Index begin = 0, elements = 0;  // range in the unit
    Index at = 0;                   // offset in the values collected from all ranks, in rank order
  };

  /// `plans`: the plans of all ranks. `sliced_from`: for this kind of sharding and the kinds after it, a rank contributes only its slice.
  Contributions(const plan::Outline& model, const std::vector<plan::Plan>& plans, plan::Sharding sliced_from = plan::Sharding::parameters);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// counts() returns the number of elements of each rank, elements() that of all ranks.
  [[nodiscard]] const std::vector<std::size_t>& counts() const { return counts_; }
  [[nodiscard]] Index elements() const { return elements_; }

  /// Copies to.size() elements of a layer's parameters, from number `offset` on, out of the values collected from all ranks. `which`: the
  /// part, if the layer is divided.
  template <class T>
  void copy(std::span<const T> all, int layer, int which, Index offset, std::span<T> to) const {
    for (const Part& part : parts_) {
      if (layer < part.first || layer >= part.last || which != part.part) continue;
      const Index begin = model_.elements(part.first, layer) + offset;  // offset in the unit
      const Index first = std::max(begin, part.begin), last = std::min(begin + as_index(to.size()), part.begin + part.elements);
      if (first < last) std::copy_n(all.data() + part.at + first - part.begin, last - first, to.data() + first - begin);
    }
  }

 private:
  plan::Outline model_;
  std::vector<Part> parts_;
  std::vector<std::size_t> counts_;
  Index elements_ = 0;
};

/// Collects the parameters of a model on rank 0, from the ranks that keep them. Returns an empty vector on the other ranks. Every rank
/// makes this call.
template <comm::Communicator C, class D, class T>
[[nodiscard]] std::vector<Accumulated<T>> collect(C& world, nn::StageParameters<D, T>& stage, const Contributions& from) {
  using Master = Accumulated<T>;
  std::vector<Master> own, all(world.rank() == 0 ? as_size(from.elements()) : 0);
  for (const Contributions::Part& part : from.parts()) {
    if (part.rank != world.rank()) continue;
    std::span<Master> values = stage.own_masters(part.unit);
    if constexpr (!nn::StageParameters<D, T>::has_masters)
      if (!part.sliced) values = stage.values(part.unit);
    const auto& read = on_host(stage.device(), std::span<const Master>{values});
    own.insert(own.end(), read.begin(), read.end());
  }
  HostCalls{world, stage.device()}.gather(std::span<const Master>{own}, std::span{all}, std::span{from.counts()}, 0);
  return all;
}

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/collect.hpp>
#endif
