// error: a_layer_expects_another_width_than_the_one_before_it_gives
// error(g++): in .*constexpr.* expansion of .*Sequential<.*Conv2d\(1, 6,.*Conv2d\(16, 6,
// error(clang): in call to 'Sequential\(.*{1, 6,.*{16, 6,
#include <pdp/nn/activation.hpp>
#include <pdp/nn/conv2d.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential model{nn::Conv2d{1, 6, 5}, nn::Relu{}, nn::Conv2d{16, 6, 5}};
