#pragma once

/// Definitions for pdp/train/compare.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/train/compare.hpp>

namespace pdp {

PDP_INLINE std::vector<NamedStrategy> usual_strategies(int ranks) {
  using namespace strategy;
  if (ranks == 1) return {{"Single{}", Single{}}, {"Single{.accumulate = 4}", Single{.accumulate = 4}}};
  std::vector<NamedStrategy> all{{"DataParallel{}", DataParallel{}}};
  for (const int stage : {1, 2, 3}) all.push_back({text("Zero{.stage = ", stage, "}"), Zero{.stage = stage}});
  const int micro_batches = std::min(4 * std::min(ranks, plan::most_numbered), plan::most_numbered);
  const auto pipeline = [micro_batches](bool recompute) { return Pipeline<>{.micro_batches = micro_batches, .recompute = recompute}; };
  all.push_back({text("Pipeline<>{.micro_batches = ", micro_batches, "}"), pipeline(false)});
  all.push_back({text("Pipeline<>{.micro_batches = ", micro_batches, ", .recompute = true}"), pipeline(true)});
  all.push_back({"TensorParallel{}", TensorParallel{}});
  if (ranks % 2 != 0 || ranks < 4) return all;
  const int half = ranks / 2;
  all.push_back({text("Hybrid<>{.mesh = {.data = ", half, ", .tensor = 2}}"), Hybrid<>{.mesh = {.data = half, .tensor = 2}}});
  all.push_back({text("Hybrid<>{.mesh = {.data = ", half, ", .pipeline = 2}, .micro_batches = 8}"),
                 Hybrid<>{.mesh = {.data = half, .pipeline = 2}, .micro_batches = 8}});
  return all;
}

}  // namespace pdp
