#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/sum.hpp>

namespace nn = pdp::nn;

constexpr nn::Sum layer{nn::Conv2d{6, 8, 3}, nn::Conv2d{6, 8, 1}};
