#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Residual block{
    nn::Sequential{nn::Replicate{}, nn::ColumnParallel{64, 256}, nn::Relu{}, nn::RowParallel{256, 64}, nn::AllReduce{}}};
