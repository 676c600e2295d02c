// error: pdp: a layer that takes tokens, such as nn::Embedding, must be the first layer of the model
#include <pdp/nn/embedding.hpp>
#include <pdp/nn/residual.hpp>

constexpr pdp::nn::Residual model{pdp::nn::Embedding{10, 8}};
