#pragma once

/// All optimizers, parameter groups and averages, and the functions that rules may use.
#include <pdp/optim/adam.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/functions.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>
#include <pdp/optim/sgd.hpp>
