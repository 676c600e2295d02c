#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Residual block{nn::Sequential{nn::Linear{64, 16}, nn::Linear{16, 64}}};
