#include <pdp/nn/activation.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential model{nn::Conv2d{1, 6, 5}, nn::Relu{}, nn::Conv2d{6, 16, 5}};
