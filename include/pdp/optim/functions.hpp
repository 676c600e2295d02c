#pragma once

#include <pdp/core/functions.hpp>

/// The functions that an optimizer's rule may apply to its vectors V, besides + - * / and sqrt.
namespace pdp::optim {

using functions::abs;
using functions::max;
using functions::min;
using functions::select;
using functions::sign;

}  // namespace pdp::optim
