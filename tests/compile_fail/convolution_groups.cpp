// error: a_convolution_needs_channels_that_its_groups_divide
#include <pdp/nn/conv2d.hpp>

namespace nn = pdp::nn;

constexpr nn::Conv2d layer{6, 8, 3, {.groups = 4}};
