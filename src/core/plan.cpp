// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/plan/source/common_memory.hpp>
#include <pdp/plan/source/gradient_policy.hpp>
#include <pdp/plan/source/layout.hpp>
#include <pdp/plan/source/liveness.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/source/strategy_ref.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/verify/source/comparison.hpp>
#include <pdp/verify/source/describe.hpp>

namespace pdp::strategy {

template Plan detail::plan_of<DataParallel>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Hybrid<>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Hybrid<GPipe>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Hybrid<Interleaved>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Hybrid<ZeroBubble>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Pipeline<>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Pipeline<GPipe>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Pipeline<Interleaved>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Pipeline<ZeroBubble>>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Single>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<TensorParallel>(const void*, const Outline&, RankInWorld);
template Plan detail::plan_of<Zero>(const void*, const Outline&, RankInWorld);

}  // namespace pdp::strategy
