#pragma once

/// All layers, containers of layers and initial values.
#include <pdp/nn/activations.hpp>
#include <pdp/nn/batch_norm.hpp>
#include <pdp/nn/channel_parallel.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/concat.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/dropout.hpp>
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/group_norm.hpp>
#include <pdp/nn/head_parallel_attention.hpp>
#include <pdp/nn/layer_norm.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multi_head_attention.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/pool.hpp>
#include <pdp/nn/positions.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/reshape.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/rms_norm.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/softmax.hpp>
#include <pdp/nn/sum.hpp>
#include <pdp/nn/vocabulary_parallel_embedding.hpp>
