#pragma once

/// All losses.
#include <pdp/loss/binary_cross_entropy.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/elementwise.hpp>
#include <pdp/loss/huber_loss.hpp>
#include <pdp/loss/l1.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/loss/weighted_cross_entropy.hpp>
