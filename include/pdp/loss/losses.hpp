#pragma once

/// All losses.
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/mean_squared_error.hpp>
