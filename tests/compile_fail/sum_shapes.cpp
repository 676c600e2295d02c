// error: the_branches_of_a_sum_give_different_shapes
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/sum.hpp>

namespace nn = pdp::nn;

constexpr nn::Sum layer{nn::Conv2d{6, 8, 3}, nn::Conv2d{6, 16, 3}};
