// error: Neighbours<pdp::nn::RowParallel, pdp::nn::Relu, .*partial>
// error: the second of these two layers does not accept the placement of the first one's output
#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Replicate{}, nn::ColumnParallel{784, 64}, nn::Relu{}, nn::RowParallel{64, 64},
                             nn::Relu{},      nn::Linear{64, 10}};
