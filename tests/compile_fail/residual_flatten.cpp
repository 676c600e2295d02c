// error: pdp: nn::Flatten and nn::Reshape cannot be inside nn::Residual
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Residual block{nn::Sequential{nn::Flatten{}, nn::Linear{64, 64}}};
constexpr pdp::Index saved = block.saved_elements(pdp::Shape{64});
