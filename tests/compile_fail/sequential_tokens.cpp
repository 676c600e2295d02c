// error: only_the_first_layer_of_a_model_can_take_tokens
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

constexpr pdp::nn::Sequential model{pdp::nn::Linear{8, 8}, pdp::nn::Embedding{10, 8}};
