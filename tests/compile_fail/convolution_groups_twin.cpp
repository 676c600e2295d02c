#include <pdp/nn/conv2d.hpp>

namespace nn = pdp::nn;

constexpr nn::Conv2d layer{6, 8, 3, {.groups = 2}};
