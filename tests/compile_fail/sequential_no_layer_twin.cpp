#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

struct NoLayer {};

constexpr pdp::nn::Sequential mlp{pdp::nn::Linear{784, 64}, pdp::nn::Linear{64, 10}};
