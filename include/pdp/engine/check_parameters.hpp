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
/// a tensor that is divided over a tensor-parallel group is compared with the same part on other ranks.
template <comm::Communicator C, class D, class T>
void check_parameters(C& world, nn::StageParameters<D, T>& stage, const plan::Plan& plan) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), largest = std::numeric_limits<std::int64_t>::max();
  const auto holds = [&plan](int layer) {
    return std::ranges::any_of(plan.units, [layer](const plan::Unit& unit) {
      return unit.first <= layer && layer < unit.last && unit.sharding != plan::Sharding::parameters;
    });
  };
  // Name and layer. The two layers that share a parameter have the same name, and are compared, too.
  std::vector<std::pair<std::string, int>> tensors;
  for (const auto& [parameter, layer] : stage.of_model())
    for (int part = 0; part < (parameter.is_divided() ? plan.tensor.count : 1); ++part) tensors.emplace_back(parameter.full_name(), layer);

  std::vector<std::int64_t> own(tensors.size(), largest);
  const auto look_at = [&]<class E>(const nn::Parameter& parameter, std::span<E> values) {
    const std::string name = parameter.full_name();
    if (std::ranges::none_of(tensors, [&](const auto& each) { return each.first == name && holds(each.second); })) return;
    const auto at =
        std::ranges::find(tensors, name, &std::pair<std::string, int>::first) + (parameter.is_divided() ? plan.tensor.index : 0);
    std::int64_t& hash = own[as_size(at - tensors.begin())];
    const std::int64_t before =
        std::exchange(hash, random::hash_of(std::span<const E>{on_host(stage.device(), std::span<const E>{values})}));
    if (before != largest) hash = random::hash_of(std::span<const std::int64_t>{std::array{before, hash}});
  };
  stage.for_each_parameter(look_at);
  if constexpr (nn::StageParameters<D, T>::has_masters) stage.for_each_master(look_at);
  std::vector<std::int64_t> lowest = own, highest = own;
  for (std::int64_t& hash : highest)
    if (hash == largest) hash = least;  // this rank does not hold the tensor
  HostCalls calls{world, stage.device()};
  calls.all_reduce(std::span{lowest}, comm::Min{});
  calls.all_reduce(std::span{highest}, comm::Max{});

  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (highest[t] == least || lowest[t] == highest[t]) continue;
    std::vector<std::int64_t> by_rank(as_size(world.size()));
    calls.all_gather(std::span<const std::int64_t>{&own[t], 1}, std::span{by_rank});
    const auto first = std::ranges::find_if(by_rank, [](std::int64_t hash) { return hash != largest; });
    const auto other = std::find_if(first, by_rank.end(), [&](std::int64_t hash) { return hash != largest && hash != *first; });
    throw ParametersDiffer{text(tensors[t].first, " differs between the ranks that hold it: rank ", other - by_rank.begin(),
                                " has other values than rank ", first - by_rank.begin(),
                                "; look for code that changes parameters on one rank only, between steps or from a file")};
  }
}

}  // namespace pdp::engine
