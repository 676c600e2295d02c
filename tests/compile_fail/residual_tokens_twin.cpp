#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>

constexpr pdp::nn::Residual model{pdp::nn::Linear{8, 8}};
