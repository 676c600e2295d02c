#pragma once

#include <string>

#include <pdp/core/device.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/cpu/activation.hpp>
#include <pdp/cpu/attend.hpp>
#include <pdp/cpu/batch_normalise.hpp>
#include <pdp/cpu/bfloat16.hpp>
#include <pdp/cpu/bfloat16_products.hpp>
#include <pdp/cpu/convert.hpp>
#include <pdp/cpu/convolve.hpp>
#include <pdp/cpu/drop.hpp>
#include <pdp/cpu/elementwise_loss.hpp>
#include <pdp/cpu/embed.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/loss.hpp>
#include <pdp/cpu/map.hpp>
#include <pdp/cpu/memory.hpp>
#include <pdp/cpu/normalise.hpp>
#include <pdp/cpu/parts.hpp>
#include <pdp/cpu/pool.hpp>
#include <pdp/cpu/rows.hpp>
#include <pdp/cpu/softmax.hpp>
#include <pdp/cpu/tag.hpp>
#include <pdp/cpu/update.hpp>

namespace pdp::cpu {

/// Returns the number of cores that this process may use, by its affinity and the limits of its control groups; 0 if it is not known.
int usable_cores();

/// Describes how this processor computes: the library for products, the vector registers, the threads.
std::string describe(const Cpu& cpu);

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/cpu.hpp>
#endif
