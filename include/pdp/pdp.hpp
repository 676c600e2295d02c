#pragma once

/// The public headers of pdp that need no optional library. A backend is one more include and one more CMake target, such as
/// <pdp/comm/tcp.hpp> and pdp::tcp. All other headers are internal, or a program includes them one by one, such as
/// <pdp/checkpoint/safetensors.hpp>.

// Models
#include <pdp/nn/all_layers.hpp>

// Losses and metrics
#include <pdp/loss/losses.hpp>
#include <pdp/metric/metrics.hpp>

// Optimizers
#include <pdp/optim/optimizers.hpp>
#include <pdp/optim/schedule.hpp>

// Strategies
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>

// Communicators
#include <pdp/comm/checked.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>

// Data
#include <pdp/data/in_memory.hpp>
#include <pdp/data/mnist.hpp>

// Training
#include <pdp/launch/run.hpp>
#include <pdp/train/callbacks.hpp>
#include <pdp/train/compare.hpp>
#include <pdp/train/timeline.hpp>
#include <pdp/train/trainer.hpp>
