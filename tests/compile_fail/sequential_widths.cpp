// error: a_layer_expects_another_width_than_the_one_before_it_gives
// error(g++): in .*constexpr.* expansion of .*Sequential<.*{784, 64.*{65, 10
// error(clang): in call to 'Sequential\(.*{784, 64.*{65, 10
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{65, 10}};
