// error: nn::Flatten and nn::Reshape cannot be inside nn::Sum or nn::Concat
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sum.hpp>

namespace nn = pdp::nn;

constexpr nn::Sum layer{nn::Linear{6, 6}, nn::Flatten{}};
