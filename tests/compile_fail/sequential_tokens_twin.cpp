#include <pdp/nn/embedding.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

constexpr pdp::nn::Sequential model{pdp::nn::Embedding{10, 8}, pdp::nn::Linear{8, 8}};
