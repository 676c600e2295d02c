#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Throws ParametersDiffer on every rank if a parameter that several ranks hold is not bitwise equal on all of them. Every rank of the
/// world makes this call. Parameters of which a rank keeps only a slice are not compared, since no other rank has that slice. Each part of
/// a tensor that is divided over a tensor-parallel group is compared with the same part on other ranks. The copy in a tied layer is
/// compared like the tensor itself, also on a rank that has both.
template <comm::Communicator C, class D, class T>
void check_parameters(C& world, nn::StageParameters<D, T>& stage, const plan::Plan& plan) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), largest = std::numeric_limits<std::int64_t>::max();
  const auto holds = [&plan](int layer) {
    return std::ranges::any_of(plan.units, [layer](const plan::Unit& unit) {
      return unit.first <= layer && layer < unit.last && unit.sharding != plan::Sharding::parameters;
    });
  };
  std::vector<std::string> tensors;  // names, one for each part
  std::vector<int> layers;           // that have them
  std::string held_copy;             // the name of the tensor of which this rank has a copy in a tied layer
  for (const auto& [parameter, layer] : stage.of_model()) {
    if (parameter.is_copy && holds(layer)) held_copy = parameter.full_name();
    for (int part = 0; !parameter.is_copy && part < (parameter.is_divided() ? plan.tensor.count : 1); ++part) {
      tensors.push_back(parameter.full_name());
      layers.push_back(layer);
    }
  }

  std::vector<std::int64_t> own(tensors.size(), largest), copies = own;  // hashes; of copies in tied layers, too
  const auto look_at = [&]<class E>(const nn::Parameter& parameter, std::span<E> values) {
    const std::string name = parameter.full_name();
    const auto at = as_size(std::ranges::find(tensors, name) - tensors.begin() + (parameter.is_divided() ? plan.tensor.index : 0));
    if (!(parameter.is_copy ? held_copy == name : holds(layers[at]))) return;
    std::int64_t& hash = (parameter.is_copy ? copies : own)[at];
    const std::int64_t before =
        std::exchange(hash, random::hash_of(std::span<const E>{on_host(stage.device(), std::span<const E>{values})}));
    if (before != largest) hash = random::hash_of(std::span<const std::int64_t>{std::array{before, hash}});
  };
  stage.for_each_parameter(look_at);
  if constexpr (nn::StageParameters<D, T>::has_masters) stage.for_each_master(look_at);
  std::vector<std::int64_t> lowest(own.size()), highest(own.size());
  for (std::size_t t = 0; t < own.size(); ++t) {
    lowest[t] = std::min(own[t], copies[t]);
    highest[t] = least;  // this rank does not hold the tensor
    for (const std::int64_t hash : {own[t], copies[t]})
      if (hash != largest) highest[t] = std::max(highest[t], hash);
    if (own[t] == largest) own[t] = copies[t];
  }
  HostCalls calls{world, stage.device()};
  calls.all_reduce(std::span{lowest}, comm::Min{});
  calls.all_reduce(std::span{highest}, comm::Max{});

  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (highest[t] == least || lowest[t] == highest[t]) continue;
    std::vector<std::int64_t> by_rank(as_size(world.size()));
    calls.all_gather(std::span<const std::int64_t>{&own[t], 1}, std::span{by_rank});
    const auto first = std::ranges::find_if(by_rank, [](std::int64_t hash) { return hash != largest; });
    const auto other = std::find_if(first, by_rank.end(), [&](std::int64_t hash) { return hash != largest && hash != *first; });
    if (other == by_rank.end())
      throw ParametersDiffer{
          text(tensors[t], " differs between the two layers that share it; look for code that changes only one of them")};
    throw ParametersDiffer{text(tensors[t], " differs between the ranks that hold it: rank ", other - by_rank.begin(),
                                " has other values than rank ", first - by_rank.begin(),
                                "; look for code that changes parameters on one rank only, between steps or from a file")};
  }
}

}  // namespace pdp::engine
