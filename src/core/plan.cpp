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
#include <pdp/verify/source/describe.hpp>

namespace pdp::strategy {

template StrategyRef::StrategyRef(const DataParallel&);
template StrategyRef::StrategyRef(const Hybrid<>&);
template StrategyRef::StrategyRef(const Pipeline<>&);
template StrategyRef::StrategyRef(const Single&);
template StrategyRef::StrategyRef(const TensorParallel&);
template StrategyRef::StrategyRef(const Zero&);

}  // namespace pdp::strategy
