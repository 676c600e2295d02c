#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

constexpr pdp::nn::Repeat none{1, pdp::nn::Linear{8, 8}};
