#pragma once

/// All optimizers.
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>
