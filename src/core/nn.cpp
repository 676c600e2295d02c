// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/source/binary_cross_entropy.hpp>
#include <pdp/loss/source/cross_entropy.hpp>
#include <pdp/loss/source/weighted_cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/column_parallel.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/source/block.hpp>
#include <pdp/nn/source/channel_parallel.hpp>
#include <pdp/nn/source/column_parallel.hpp>
#include <pdp/nn/source/concat.hpp>
#include <pdp/nn/source/conv2d.hpp>
#include <pdp/nn/source/divided.hpp>
#include <pdp/nn/source/dropout.hpp>
#include <pdp/nn/source/group_norm.hpp>
#include <pdp/nn/source/image.hpp>
#include <pdp/nn/source/initializer.hpp>
#include <pdp/nn/source/layout.hpp>
#include <pdp/nn/source/multi_head_attention.hpp>
#include <pdp/nn/source/multilayer_perceptron.hpp>
#include <pdp/nn/source/normalisation_options.hpp>
#include <pdp/nn/source/outline.hpp>
#include <pdp/nn/source/parameter.hpp>
#include <pdp/nn/source/placement.hpp>
#include <pdp/nn/source/positions.hpp>
#include <pdp/nn/source/reshape.hpp>
#include <pdp/nn/source/residual.hpp>
#include <pdp/nn/source/stage.hpp>
#include <pdp/nn/source/stage_parameters.hpp>
#include <pdp/nn/source/sum.hpp>

namespace pdp::nn {

static_assert(Layer<Linear> && Layer<Relu> && Layer<Tanh> && Layer<Flatten>);
static_assert(is_view<Flatten> && !is_view<Relu> && works_in_place<Relu> && !works_in_place<Flatten>);
static_assert(PlacedLayer<ColumnParallel> && PlacedLayer<RowParallel>);
static_assert(PlacedLayer<Replicate> && PlacedLayer<AllReduce> && is_view<Replicate>);
static_assert(Block<MultilayerPerceptron<Tanh>>);

}  // namespace pdp::nn
