#include <pdp/nn/activation.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}};
static_assert(nn::outline(nn::Divided{mlp, nn::Part{0, 4}, nn::Output::whole}, pdp::Shape{784}).size() == 5);
