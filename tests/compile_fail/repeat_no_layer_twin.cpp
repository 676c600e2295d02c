#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

const pdp::nn::Repeat deep{3, pdp::nn::Linear{8, 8}};
