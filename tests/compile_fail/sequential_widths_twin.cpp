#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}};
