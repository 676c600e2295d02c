#pragma once

/// All metrics.
#include <pdp/metric/any.hpp>
#include <pdp/metric/classification.hpp>
#include <pdp/metric/regression.hpp>
