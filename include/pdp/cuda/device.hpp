#pragma once

#include <pdp/core/device.hpp>
#include <pdp/cuda/elementwise_loss.hpp>
#include <pdp/cuda/graph.hpp>
#include <pdp/cuda/handle.hpp>
#include <pdp/cuda/map.hpp>
#include <pdp/cuda/memory.hpp>
#include <pdp/cuda/operations.hpp>
#include <pdp/cuda/update.hpp>

namespace pdp {

static_assert(Device<cuda::Device>);

}  // namespace pdp
