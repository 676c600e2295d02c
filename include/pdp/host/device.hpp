#pragma once

#include <pdp/core/device.hpp>
#include <pdp/host/activation.hpp>
#include <pdp/host/convert.hpp>
#include <pdp/host/gemm.hpp>
#include <pdp/host/loss.hpp>
#include <pdp/host/rows.hpp>
#include <pdp/host/tag.hpp>
#include <pdp/host/update.hpp>

namespace pdp {

static_assert(Device<host::Cpu, float> && Device<host::Cpu, double>);

}  // namespace pdp
