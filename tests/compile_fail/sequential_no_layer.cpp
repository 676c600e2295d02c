// error: pdp: every argument of nn::Sequential must be a layer or a container of layers
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>

struct NoLayer {};

constexpr pdp::nn::Sequential mlp{pdp::nn::Linear{784, 64}, NoLayer{}};
