// error: Neighbours<pdp::nn::Relu, pdp::nn::ColumnParallel, .*invariant>
// error: the second of these two layers does not accept the placement of the first one's output
#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::ColumnParallel{64, 64}, nn::RowParallel{64, 10}, nn::AllReduce{}};
